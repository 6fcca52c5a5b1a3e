package agent

import (
	"encoding/json"
	"testing"
	"unicode/utf8"
)

func TestReadEvent(t *testing.T) {
	tests := map[string]struct {
		in   string
		want string // "" is an error
		err  error
	}{
		"an event":                    {`{"type":"A"}`, `{"type":"A"}`, nil},
		"type last":                   {`{"x":{"type":""},"y":["type",1,-2.5e3,true,null],"type":"A"}`, `{"x":{"type":""},"y":["type",1,-2.5e3,true,null],"type":"A"}`, nil},
		"white space around it":       {" \r\n{ \"type\" : \"A\" , \"x\" : [ ] }\t", "{ \"type\" : \"A\" , \"x\" : [ ] }", nil},
		"lines within it":             {"{\"type\":\n\"A\"}", "{\"type\":\n\"A\"}", nil},
		"numbers and escapes stay":    {`{"type":"A","n":1e400,"b":9223372036854775808,"s":"\ud800\u0000<"}`, `{"type":"A","n":1e400,"b":9223372036854775808,"s":"\ud800\u0000<"}`, nil},
		"the last of several types":   {`{"type":1,"type":"A"}`, `{"type":1,"type":"A"}`, nil},
		"escaped name":                {`{"\u0074ype":"A"}`, `{"\u0074ype":"A"}`, nil},
		"quotes in strings":           {`{"x":"\\\"}","type":"A"}`, `{"x":"\\\"}","type":"A"}`, nil},
		"invalid UTF-8":               {"{\"type\":\"A\xff\"}", "{\"type\":\"A\ufffd\"}", nil},
		"empty":                       {``, "", errNotJSON},
		"done marker":                 {`[DONE]`, "", errNotJSON},
		"two objects":                 {`{"type":"A"}{"type":"B"}`, "", errNotJSON},
		"cut off":                     {`{"type":"A`, "", errNotJSON},
		"null":                        {`null`, "", errNotObject},
		"array":                       {`[{"type":"A"}]`, "", errNotObject},
		"string":                      {`"A"`, "", errNotObject},
		"empty object":                {`{}`, "", errNoType},
		"no type":                     {`{"x":"type"}`, "", errNoType},
		"type of something within":    {`{"x":{"type":"A"}}`, "", errNoType},
		"name in other case":          {`{"Type":"A","TYPE":"B"}`, "", errNoType},
		"type is a number":            {`{"type":1}`, "", errNoType},
		"type is empty":               {`{"type":""}`, "", errNoType},
		"type is taken back":          {`{"type":"A","type":null}`, "", errNoType},
		"type is an object with type": {`{"type":{"type":"A"}}`, "", errNoType},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := readEvent([]byte(test.in))
			if string(got) != test.want || err != test.err {
				t.Errorf("got %q, %v; want %q, %v", got, err, test.want, test.err)
			}
		})
	}
}

// FuzzReadEvent holds the scan for the type against encoding/json, which decodes into a map with exact names and
// the last of equal ones.
func FuzzReadEvent(f *testing.F) {
	f.Add([]byte(`{"type":1,"x":[{"type":"\\"}],"\u0074ype":"A"}`))
	f.Add([]byte(` {"type" : "" , "a":-1.5e+3,"b":[true ,false,null]} `))
	f.Fuzz(func(t *testing.T, in []byte) {
		var object map[string]any
		kind, want := "", json.Unmarshal(in, &object) == nil
		if want {
			kind, want = object["type"].(string)
		}
		event, err := readEvent(in)
		if utf8.Valid(in) && (err == nil) != (want && kind != "") {
			t.Errorf("%q: %v; encoding/json finds type %q", in, err, kind)
		}
		if err == nil && !utf8.Valid(event) {
			t.Errorf("%q: the event is not UTF-8", in)
		}
	})
}
