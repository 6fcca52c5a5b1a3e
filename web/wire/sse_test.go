package wire_test

import (
	"testing"

	"github.com/threadcast/threadcast/web/wire"
)

func TestSSE(t *testing.T) {
	for name, tt := range map[string]struct {
		event wire.SSE
		want  string
	}{
		"AnEvent":                  {wire.SSE{ID: "3-1", Data: []byte(`{"a":1}`)}, "id: 3-1\ndata: {\"a\":1}\n\n"},
		"WithoutAPosition":         {wire.SSE{Data: []byte(`{}`)}, "data: {}\n\n"},
		"WithAName":                {wire.SSE{ID: "3-0", Event: "reset", Data: []byte(`{}`)}, "id: 3-0\nevent: reset\ndata: {}\n\n"},
		"OverSeveralLines":         {wire.SSE{Data: []byte("{\n \"a\":1\n}")}, "data: {\ndata:  \"a\":1\ndata: }\n\n"},
		"NoCarriageReturnGoesOut":  {wire.SSE{Data: []byte("{\r\n\"a\":\r1\r}")}, "data: { \ndata: \"a\": 1 }\n\n"},
		"ALineFeedAtTheEnd":        {wire.SSE{Data: []byte("{}\n")}, "data: {}\ndata: \n\n"},
		"EscapedOnesAreLeftAlone":  {wire.SSE{Data: []byte(`{"a":"\r\n"}`)}, `data: {"a":"\r\n"}` + "\n\n"},
		"OtherLineSeparatorsAsIs":  {wire.SSE{Data: []byte("\"\u2028\u0085\"")}, "data: \"\u2028\u0085\"\n\n"},
		"BesideWhatIsThereAlready": {wire.SSE{ID: "1-1", Data: []byte(`1`)}, "id: 1-1\ndata: 1\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(tt.event.Append([]byte("before"))); got != "before"+tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
