package agui_test

import (
	"testing"

	"github.com/threadcast/threadcast/runner/agui"
)

func TestMapMembers(t *testing.T) {
	for object, want := range map[string]string{
		`{"a":1,"b":2}`:            `{"a":1}`,
		`{"b":2,"a":1}`:            `{"a":1}`,
		`{ "b" : 2 , "b":3 }`:      `{}`,
		`{"\u0062":2,"c":[1 , 2]}`: `{"c":[1 , 2]}`,
		`{"c":3, "x" : "\ud800"}`:  `{"c":"three","x":"\ud800"}`,
		` { "a" : 1 } `:            ` { "a" : 1 } `,
		`[{"b":2}]`:                `[{"b":2}]`,
		`{"b":2`:                   `{"b":2`,
		`{}`:                       `{}`,
		`"b"`:                      `"b"`,
	} {
		got := agui.MapMembers([]byte(object), func(name string, value []byte) []byte {
			switch name {
			case "b":
				return nil
			case "c":
				if string(value) == "3" {
					return []byte(`"three"`)
				}
			}
			return value
		})
		if string(got) != want {
			t.Errorf("%s becomes %s, want %s", object, got, want)
		}
	}
}

func TestMapElements(t *testing.T) {
	for array, want := range map[string]string{
		`[1,2,3]`: `[1,3]`, `[2]`: `[]`, ` [1 , 3] `: ` [1 , 3] `, `[]`: `[]`, `{"a":2}`: `{"a":2}`, `[2`: `[2`, `2`: `2`,
	} {
		got := agui.MapElements([]byte(array), func(e []byte) []byte {
			if string(e) == "2" {
				return nil
			}
			return e
		})
		if string(got) != want {
			t.Errorf("%s becomes %s, want %s", array, got, want)
		}
	}
}

func TestWithMember(t *testing.T) {
	for object, want := range map[string]string{
		`{"a":1}`: `{"a":1,"x":"y"}`, `{"x":1, "a":1}`: `{"x":"y", "a":1}`, `{ }`: `{"x":"y"}`, `[]`: `[]`, `{`: `{`,
	} {
		if got := agui.WithMember([]byte(object), "x", []byte(`"y"`)); string(got) != want {
			t.Errorf("%s becomes %s, want %s", object, got, want)
		}
	}
}
