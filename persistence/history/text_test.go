package history_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/threadcast/threadcast/persistence/history"
)

func TestTextInTheDatabase(t *testing.T) {
	for _, c := range []struct{ name, text, stored string }{
		{"plain text stands as it is", `C:\dir "quoted" é`, `C:\dir "quoted" é`},
		{"empty text is empty", "", ""},
		{"NUL is escaped", "a\x00b", `"a\x00b"`},
		{"bytes that are no UTF-8 are escaped", "a\xff", `"a\xff"`},
		{"a leading quotation mark is escaped", `"a"`, `"\"a\""`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := history.Text(c.text).Value()
			if err != nil || got != c.stored {
				t.Errorf("stored as %q (%v), want %q", got, err, c.stored)
			}
		})
	}
}

func TestTextComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(
			rapid.String(),
			rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
			rapid.StringOf(rapid.SampledFrom([]rune("\"\\x00\x00é\ufffd"))),
		).Draw(t, "text")
		value, err := history.Text(text).Value()
		if err != nil {
			t.Fatal(err)
		}
		stored := value.(string)
		if strings.Contains(stored, "\x00") || !utf8.ValidString(stored) {
			t.Fatalf("%q is stored as %q, which Postgres refuses", text, stored)
		}
		for _, src := range []any{stored, []byte(stored)} {
			var back history.Text
			if err := back.Scan(src); err != nil || string(back) != text {
				t.Fatalf("%q came back as %q (%v)", text, back, err)
			}
		}
	})
}

func TestTextScan(t *testing.T) {
	t.Run("NULL is empty", func(t *testing.T) {
		text := history.Text("before")
		if err := text.Scan(nil); err != nil || text != "" {
			t.Errorf("NULL is read as %q (%v)", text, err)
		}
	})
	t.Run("a quoted text that is damaged is read as it stands", func(t *testing.T) {
		var text history.Text
		if err := text.Scan(`"half`); err != nil || text != `"half` {
			t.Errorf("it is read as %q (%v)", text, err)
		}
	})
	t.Run("a number is refused", func(t *testing.T) {
		var text history.Text
		if err := text.Scan(int64(1)); err == nil {
			t.Error("a number was read as a text")
		}
	})
}
