package terminal_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/threadcast/threadcast/cmd/threadcast/terminal"
)

func TestInert(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"words":              {"Grüße, 日本 👩‍🚀\tü\n", "Grüße, 日本 👩‍🚀\tü\n"},
		"Arabic and Persian": {"می\u200cخواهم \u0600", "می\u200cخواهم \u0600"},
		"a title":            {"\x1b]0;x\x07", "␛]0;x␇"},
		"a link":             {"\x1b]8;;http://x\x1b\\y", "␛]8;;http://x␛\\y"},
		"colours":            {"\x1b[31mred", "␛[31mred"},
		"of one character":   {"\u009b31m\u009d", "<U+009B>31m<U+009D>"},
		"what goes back":     {"a\bb\rc\x7f", "a␈b␍c␡"},
		"line breaks of DOS": {"a\r\nb", "a\nb"},
		"bidi":               {"\u202ea\u202c\u2066b\u2069\u200f\u061c", "<U+202E>a<U+202C><U+2066>b<U+2069><U+200F><U+061C>"},
		"hidden text":        {"a\u200b\ufeff\U000e0041b", "a<U+200B><U+FEFF><U+E0041>b"},
		"other line breaks":  {"a\u2028b\u2029c\u0085", "a<U+2028>b<U+2029>c<U+0085>"},
		"what is no UTF-8":   {"a\x9bb\x1b", "a\ufffdb␛"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := terminal.Inert(test.in); got != test.want {
				t.Errorf("it is %q, want %q", got, test.want)
			}
		})
	}
}

// active tells whether text has what drives a terminal, as a terminal would see it.
func active(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool {
		return r != '\n' && r != '\t' && (unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Bidi_Control, r))
	})
}

func TestInertTextDoesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.RuneFrom([]rune("\x1b[]m\x07\u009b\u202e\r\na")))).Draw(t, "text")
		once := terminal.Inert(text)
		if active(once) {
			t.Fatalf("%q came out as %q", text, once)
		}
		if again := terminal.Inert(once); again != once {
			t.Fatalf("%q came out as %q, and that as %q", text, once, again)
		}
	})
}

// The recorded run is full of what would drive a terminal. All that comes through are the colours of this package.
func TestNothingOfARunDrivesTheTerminal(t *testing.T) {
	text, err := os.ReadFile("testdata/color.txt")
	if err != nil {
		t.Fatal(err)
	}
	colours := regexp.MustCompile("\x1b\\[(0|1|2|31|32|33|36)m")
	if n := len(colours.FindAll(text, -1)); n < 20 || n%2 != 0 {
		t.Errorf("there are %d colours", n)
	}
	if rest := colours.ReplaceAllString(string(text), ""); active(rest) {
		t.Errorf("there is more in it: %q", rest)
	}
}
