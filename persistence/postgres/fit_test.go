package postgres

import (
	"errors"
	"testing"
)

func TestWhatIsFit(t *testing.T) {
	for _, c := range []struct {
		version  int
		encoding string
		want     bool
	}{
		{130000, "UTF8", true},
		{180001, "UTF8", true},
		{120022, "UTF8", false},
		{90624, "UTF8", false},
		{150018, "SQL_ASCII", false},
		{150018, "LATIN1", false},
	} {
		if err := fit(c.version, c.encoding); (err == nil) != c.want || err != nil && !errors.Is(err, ErrUnfit) {
			t.Errorf("version %d with %s: %v", c.version, c.encoding, err)
		}
	}
}
