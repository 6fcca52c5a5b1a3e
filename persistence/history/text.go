package history

import (
	"database/sql/driver"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Text is a text that somebody else chose: an id, a title, an error message. In the database it stands as it
// is, except that one which holds NUL or is not valid UTF-8 (Postgres refuses both), or which begins with a
// quotation mark, is written as a quoted Go string. Reading takes that back, so every Text comes out as it
// went in, on both databases.
type Text string

// Value is the form of t in the database.
func (t Text) Value() (driver.Value, error) {
	s := string(t)
	if strings.HasPrefix(s, `"`) || strings.IndexByte(s, 0) >= 0 || !utf8.ValidString(s) {
		return strconv.Quote(s), nil
	}
	return s, nil
}

// Scan reads the form that [Text.Value] writes; NULL is the empty text.
func (t *Text) Scan(src any) error {
	var s string
	switch v := src.(type) {
	case nil:
	case string:
		s = v
	case []byte:
		s = string(v)
	default:
		return fmt.Errorf("read a text: the database holds a %T", src)
	}
	if strings.HasPrefix(s, `"`) {
		if plain, err := strconv.Unquote(s); err == nil {
			s = plain
		}
	}
	*t = Text(s)
	return nil
}
