package copilotkit_test

import (
	"errors"
	"testing"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/web/copilotkit"
)

func TestPositionsAreReadAsTheyAreWritten(t *testing.T) {
	at := thread.Cursor{Run: 3, Seq: 120}
	for text, want := range map[string]copilotkit.Position{
		"0-0":     {},
		"3-120":   {Cursor: at},
		"3-120+7": {Cursor: at, Plus: 7},
		"3-120~0": {Cursor: at, Lost: 1},
		"3-120~2": {Cursor: at, Lost: 3},
		"0-0~0":   {Lost: 1},
	} {
		got, err := copilotkit.ParsePosition(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%s is read as %+v, %v, and written as %s", text, got, err, got)
		}
	}
}

func TestOtherTextsAreNoPositions(t *testing.T) {
	for _, text := range []string{"", "x", "3", "3-120+", "3-120+0", "3-120+07", "3-120+-1", "3-120++1", "3-120~", "3-120~x",
		"3-120+1~2", "-1", "3-120 ", "cpki_ingested:7", "1767225600000-3-1", "3-120+99999999999999999999"} {
		if _, err := copilotkit.ParsePosition(text); !errors.Is(err, thread.ErrBadCursor) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
