package agui_test

import (
	"fmt"
	"testing"

	"github.com/threadcast/threadcast/runner/agui"
)

func TestMembersAreFoundWhereTheyStand(t *testing.T) {
	object := []byte(` { "a" : [1, {"b":2}] ,"\u0061":"x\ty", "":null}` + "\n")
	members, ok := agui.AppendMembers(nil, object)
	if !ok {
		t.Fatal("it is an object")
	}
	got := ""
	for _, m := range members {
		got += fmt.Sprintf("%s=%s/%s|", m.Name, object[m.At:m.To], agui.Text(object[m.From:m.To]))
	}
	want := `a="a" : [1, {"b":2}]/|a="\u0061":"x\ty"/x` + "\t" + `y|="":null/|`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestWhatIsNoObjectHasNoMembers(t *testing.T) {
	for _, text := range []string{``, `[]`, `null`, `{`, `{"a"}`, `{"a":1}}`, `{"a":1} x`, `{'a':1}`, `{"a":01}`, `{"a":1,}`} {
		if _, ok := agui.AppendMembers(nil, []byte(text)); ok {
			t.Errorf("%s is said to be one", text)
		}
	}
}
