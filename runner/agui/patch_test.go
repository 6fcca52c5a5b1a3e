package agui_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/threadcast/threadcast/runner/agui"
)

// What the reference client makes of patches, as observed; "left" is what threadcast leaves to consumers because
// it is not what RFC 6902 says.
func TestPatches(t *testing.T) {
	const left = "left"
	add := func(path, value string) string { return fmt.Sprintf(`{"op":"add","path":%q,"value":%s}`, path, value) }
	from := func(op, from, path string) string {
		return fmt.Sprintf(`{"op":%q,"from":%q,"path":%q}`, op, from, path)
	}
	with := func(op, path, value string) string {
		return fmt.Sprintf(`{"op":%q,"path":%q,"value":%s}`, op, path, value)
	}
	remove := func(path string) string { return fmt.Sprintf(`{"op":"remove","path":%q}`, path) }
	for _, c := range []struct{ name, state, patch, want string }{
		{"AddMember", `{"a":1}`, add("/b", "2"), `{"a":1,"b":2}`},
		{"AddReplacesMember", `{"a":1}`, add("/a", "null"), `{"a":null}`},
		{"AddInserts", `[1,2]`, add("/1", "9"), `[1,9,2]`},
		{"AddAtTheEnd", `[1,2]`, add("/2", "9"), `[1,2,9]`},
		{"AddAppends", `[1,2]`, add("/-", "9"), `[1,2,9]`},
		{"AddBeyondTheEnd", `[1,2]`, add("/3", "9"), `[1,2]`},
		{"AddAtANegativeIndex", `[1,2]`, add("/-1", "9"), `[1,2]`},
		{"AddAtAName", `[1,2]`, add("/length", "9"), `[1,2]`},
		{"AddAtALeadingZero", `[1,2]`, add("/01", "9"), left},
		{"AddAtAnEmptyIndex", `[1,2]`, add("/", "9"), left},
		{"AddAtAnIndexOf33Bits", `[1]`, add("/4294967297", "9"), left},
		{"AddUnderAMissingMember", `{"a":1}`, add("/x/b", "1"), `{"a":1}`},
		{"AddUnderANumber", `{"a":1}`, add("/a/b", "1"), `{"a":1}`},
		{"AddUnderNull", `null`, add("/a", "1"), `null`},
		{"AddUnderTextAsDocument", `"s"`, add("/a", "1"), left},
		{"AddDocument", `{"a":1}`, add("", "[1]"), `[1]`},
		{"AddEmptyName", `{"a":1}`, add("/", "2"), `{"a":1,"":2}`},
		{"AddEscapedNames", `{"a/b":{}}`, add("/a~1b/c~0d", "1"), `{"a/b":{"c~d":1}}`},
		{"AddPrototype", `{"a":1}`, add("/__proto__", "1"), `{"a":1}`},
		{"AddConstructorPrototype", `{"constructor":{}}`, add("/constructor/prototype", "1"), `{"constructor":{}}`},
		{"AddUnderWhatObjectsInherit", `{"a":1}`, add("/toString/x", "1"), left},
		{"AddWhatObjectsInherit", `{"a":1}`, add("/toString", "1"), `{"a":1,"toString":1}`},
		{"ReplaceMember", `{"a":1}`, with("replace", "/a", "1e400"), `{"a":1e400}`},
		{"ReplaceMissing", `{"a":1}`, with("replace", "/b", "1"), `{"a":1}`},
		{"ReplaceElement", `[1,2]`, with("replace", "/1", "9"), `[1,9]`},
		{"ReplaceAtTheDash", `[1,2]`, with("replace", "/-", "9"), `[1,2]`},
		{"ReplaceDocument", `{"a":1}`, with("replace", "", "0"), `0`},
		{"RemoveMember", `{"a":1,"b":2}`, remove("/a"), `{"b":2}`},
		{"RemoveElement", `[1,2,3]`, remove("/1"), `[1,3]`},
		{"RemoveMissing", `[1]`, remove("/1"), `[1]`},
		{"RemoveDocument", `{"a":1}`, remove(""), `null`},
		{"RemoveWhatObjectsInherit", `{"a":1}`, remove("/valueOf"), left},
		{"MoveMember", `{"a":{"x":1}}`, from("move", "/a/x", "/b"), `{"a":{},"b":1}`},
		{"MoveElement", `[1,2,3]`, from("move", "/0", "/2"), `[2,3,1]`},
		{"MoveOntoItself", `{"a":1}`, from("move", "/a", "/a"), `{"a":1}`},
		{"MoveIntoItself", `{"a":{"b":1}}`, from("move", "/a", "/a/c"), `{"a":{"b":1}}`},
		{"MoveToTheDocument", `{"a":{"b":1}}`, from("move", "/a", ""), `{"b":1}`},
		{"MoveTheDocument", `{"a":1}`, from("move", "", "/a"), left},
		{"MoveFromMissing", `{"a":1}`, from("move", "/x", "/b"), `{"a":1}`},
		{"CopyIsDeep", `{"a":{"x":[1]}}`, from("copy", "/a", "/b") + `,` + add("/a/x/-", "2"), `{"a":{"x":[1,2]},"b":{"x":[1]}}`},
		{"CopyTheDocument", `{"a":{}}`, from("copy", "", "/a/b"), `{"a":{"b":{"a":{}}}}`},
		{"CopyBeyondTheEnd", `{"l":[1],"b":5}`, from("copy", "/b", "/l/9"), left},
		{"CopyFromMissingToTheDocument", `{"a":1}`, from("copy", "/x", ""), left},
		{"MoveFromMissingToTheDocument", `{"a":1}`, from("move", "/x/y", ""), left},
		{"CopyToAName", `{"l":[1],"b":5}`, from("copy", "/b", "/l/x"), `{"l":[1],"b":5}`},
		{"CopyUnderAMissingMember", `{"b":5}`, from("copy", "/b", "/n/x"), `{"b":5}`},
		{"TestNumbersByValue", `{"a":1}`, with("test", "/a", "1.0") + `,` + add("/b", "2"), `{"a":1,"b":2}`},
		{"TestBeyondDoublePrecision", `{"a":9007199254740993}`, with("test", "/a", "9007199254740992") + `,` + add("/b", "2"),
			`{"a":9007199254740993,"b":2}`},
		{"TestObjectsWithoutOrder", `{"a":{"x":1,"y":["\u00e9"]}}`, with("test", "/a", `{"y":["é"],"x":1}`) + `,` + remove("/a"), `{}`},
		{"TestArraysInOrder", `{"a":[1,2]}`, with("test", "/a", `[2,1]`) + `,` + remove("/a"), `{"a":[1,2]}`},
		{"TestMissingIsNotNull", `{}`, with("test", "/a", "null") + `,` + add("/b", "2"), `{}`},
		{"TestKindsDiffer", `{"a":[]}`, with("test", "/a", "{}") + `,` + add("/b", "2"), `{"a":[]}`},
		{"FailureUndoesAll", `{"a":{"x":1},"l":[1,2],"z":0}`,
			add("/b", "1") + `,` + remove("/a") + `,` + add("/l/0", "0") + `,` + remove("/l/2") + `,` +
				with("replace", "/z", "7") + `,` + from("move", "/l/0", "/q") + `,` + add("", "{}") + `,` + remove("/nope"),
			`{"a":{"x":1},"l":[1,2],"z":0}`},
		{"UnknownOperationIsPassedOver", `{"a":1}`, `{"op":"frob"},` + add("/b", "2"), `{"a":1,"b":2}`},
		{"MoreMembersAreFine", `{"a":1}`, `{"op":"remove","path":"/a","value":null,"x":1}`, `{}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			delta := `{"type":"STATE_DELTA","delta":[` + c.patch + `]}`
			events := lines(`{"type":"STATE_SNAPSHOT","snapshot":`+c.state+`}`, delta)
			compacted := agui.Compact(events)
			if c.want == left {
				if diff := cmp.Diff(written(events), written(compacted)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				c.want = c.state
			} else if len(compacted) != 1 {
				t.Errorf("not folded:\n%s", texts(compacted))
			}
			var r agui.Reducer
			for _, e := range compacted {
				if err := r.Apply(e.Data); err != nil {
					t.Fatal(err)
				}
			}
			if got := string(r.State()); got != c.want {
				t.Errorf("state %s, want %s", got, c.want)
			}
		})
	}
}

func TestMalformedPatchesAreKept(t *testing.T) {
	for name, patch := range map[string]string{
		"NoObject":      `5`,
		"NoOperation":   `{"path":"/a"}`,
		"NoPath":        `{"op":"remove"}`,
		"NoValue":       `{"op":"add","path":"/a"}`,
		"NoFrom":        `{"op":"move","path":"/a"}`,
		"NoSlash":       `{"op":"remove","path":"a"}`,
		"BadTilde":      `{"op":"remove","path":"/a~2"}`,
		"UnclosedTilde": `{"op":"remove","path":"/~"}`,
	} {
		t.Run(name, func(t *testing.T) {
			events := lines(`{"type":"STATE_SNAPSHOT","snapshot":{"a":1}}`, `{"type":"STATE_DELTA","delta":[`+patch+`]}`)
			if diff := cmp.Diff(written(events), written(agui.Compact(events))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
