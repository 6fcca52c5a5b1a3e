package thread_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/threadcast/threadcast/persistence/thread"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParseCursor(t *testing.T) {
	for text, want := range map[string]thread.Cursor{
		"0-0":                   {},
		"1-0":                   {Run: 1},
		"3-120":                 {Run: 3, Seq: 120},
		"9223372036854775807-1": {Run: math.MaxInt64, Seq: 1},
	} {
		got, err := thread.ParseCursor(text)
		if err != nil || got != want {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
		if got.String() != text {
			t.Errorf("%s is printed as %s", text, got)
		}
	}
}

func TestParseCursorRefuses(t *testing.T) {
	for _, text := range []string{
		"", "-", "abc", "0", "-1", "1-", "-0-1", "0-1", "1--1", "+1-1", "1-+1", "01-1", "1-01", " 1-1", "1-1 ", "1-1-1",
		"1.0-1", "99999999999999999999-0", "9223372036854775808-0", "１-1", strings.Repeat("9", 1<<20),
	} {
		_, err := thread.ParseCursor(text)
		if !errors.Is(err, thread.ErrBadCursor) {
			t.Errorf("%.40q: got %v", text, err)
		}
		if err != nil && len(err.Error()) > 200 {
			t.Errorf("%.40q: the error has %d bytes", text, len(err.Error()))
		}
	}
}

func FuzzParseCursor(f *testing.F) {
	for _, text := range []string{"0-0", "1-2", "01-1", "x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := thread.ParseCursor(text); err == nil && c.String() != text {
			t.Errorf("%q is read as %s", text, c)
		}
	})
}

func TestCompare(t *testing.T) {
	order := []thread.Cursor{{}, {Run: 1}, {Run: 1, Seq: 1}, {Run: 1, Seq: 10}, {Run: 2}, {Run: 10, Seq: 1}}
	for i, a := range order {
		for j, b := range order {
			if got := a.Before(b); got != (i < j) {
				t.Errorf("%s before %s is %t", a, b, got)
			}
		}
	}
}

func TestCheckID(t *testing.T) {
	for _, id := range []string{"t", "a b", "x/y:z*?", "日本", strings.Repeat("x", thread.MaxID)} {
		if err := thread.CheckID("id", id); err != nil {
			t.Errorf("%.20q: %v", id, err)
		}
	}
	for _, id := range []string{"", "a\x00b", "a\nb", "\x7f", "a\u0085b", "\xff", strings.Repeat("x", thread.MaxID+1)} {
		err := thread.CheckID("id", id)
		if !errors.Is(err, thread.ErrBadInput) || !strings.Contains(err.Error(), "id") {
			t.Errorf("%.20q: got %v", id, err)
		}
	}
}

func TestTypedErrors(t *testing.T) {
	if !errors.Is(&thread.RunningError{RunID: "r"}, thread.ErrRunning) {
		t.Error("a RunningError is not an ErrRunning")
	}
	if !errors.Is(&thread.UnfinishedError{Run: thread.Run{ID: "r"}}, thread.ErrUnfinished) {
		t.Error("an UnfinishedError is not an ErrUnfinished")
	}
	if errors.Is(&thread.RunningError{}, thread.ErrUnfinished) {
		t.Error("a RunningError is an ErrUnfinished")
	}
}
