package agui

// maxDepth is how deep values may nest; encoding/json draws the same line.
const maxDepth = 10000

// scanner steps over the values of a JSON text. Its methods tell whether what they met is well formed.
type scanner struct {
	data  []byte
	pos   int
	depth int
}

// at returns the byte at the current position, or 0 at the end.
func (s *scanner) at() byte {
	if s.pos < len(s.data) {
		return s.data[s.pos]
	}
	return 0
}

func (s *scanner) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

// value steps over one value.
func (s *scanner) value() bool {
	switch c := s.at(); c {
	case '{', '[':
		return s.composite(c)
	case '"':
		return s.str()
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	default:
		return s.number()
	}
}

func (s *scanner) word(w string) bool {
	if len(s.data)-s.pos < len(w) || string(s.data[s.pos:s.pos+len(w)]) != w {
		return false
	}
	s.pos += len(w)
	return true
}

func (s *scanner) composite(open byte) bool {
	if s.depth++; s.depth > maxDepth {
		return false
	}
	s.pos++
	s.space()
	if s.at() == open+2 { // in ASCII the closing bracket is two places behind the opening one
		s.pos++
		s.depth--
		return true
	}
	for {
		if open == '{' && s.key() == nil {
			return false
		}
		if !s.value() {
			return false
		}
		s.space()
		c := s.at()
		s.pos++
		switch c {
		case open + 2:
			s.depth--
			return true
		case ',':
			s.space()
		default:
			return false
		}
	}
}

// key steps over a member's name, the colon, and the space around them, and returns the name with its quotes; nil
// if this is not there.
func (s *scanner) key() []byte {
	start := s.pos
	if s.at() != '"' || !s.str() {
		return nil
	}
	name := s.data[start:s.pos]
	if s.space(); s.at() != ':' {
		return nil
	}
	s.pos++
	s.space()
	return name
}

func (s *scanner) str() bool {
	d := s.data
	for i := s.pos + 1; i < len(d); i++ {
		switch c := d[i]; {
		case c == '"':
			s.pos = i + 1
			return true
		case c == '\\':
			n := escapeLen(d[i:])
			if n == 0 {
				return false
			}
			i += n - 1
		case c < 0x20:
			return false
		}
	}
	return false
}

// escapeLen is the length of the escape sequence that d begins with, 0 if it is not one.
func escapeLen(d []byte) int {
	if len(d) < 2 {
		return 0
	}
	switch d[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if _, ok := hex4(d[2:]); ok {
			return 6
		}
	}
	return 0
}

func (s *scanner) digits() bool {
	start := s.pos
	for c := s.at(); '0' <= c && c <= '9'; c = s.at() {
		s.pos++
	}
	return s.pos > start
}

func (s *scanner) number() bool {
	if s.at() == '-' {
		s.pos++
	}
	if s.at() == '0' {
		s.pos++
	} else if !s.digits() {
		return false
	}
	if s.at() == '.' {
		s.pos++
		if !s.digits() {
			return false
		}
	}
	if c := s.at(); c == 'e' || c == 'E' {
		s.pos++
		if c := s.at(); c == '+' || c == '-' {
			s.pos++
		}
		return s.digits()
	}
	return true
}

// walker steps through the members of an object or the elements of an array, and judges the text on the way.
//
//	for w := walk(raw); w.next(); { use w.key, w.value }
type walker struct {
	s     scanner
	named bool   // only an object is entered
	open  byte   // '{' or '[', 0 before the first step
	key   []byte // the name of the current member, with its quotes; nil in an array
	at    int    // where the name begins
	from  int    // where the current value begins
	value []byte
	ok    bool // after the last step: the text is one well-formed object or array, and nothing else
}

func walk(raw []byte) walker { return walker{s: scanner{data: raw}} }

// walkObject is walk for what has to be an object: it makes no step into anything else.
func walkObject(raw []byte) walker { return walker{s: scanner{data: raw}, named: true} }

// next moves to the next member or element, and reports false behind the last one or where the text is malformed.
func (w *walker) next() bool {
	s := &w.s
	if w.open == 0 {
		s.space()
		if w.open = s.at(); w.open != '{' && (w.named || w.open != '[') {
			return false
		}
		s.depth++
		s.pos++
		if s.space(); s.at() == w.open+2 {
			return w.end()
		}
	} else {
		switch s.space(); s.at() {
		case w.open + 2:
			return w.end()
		case ',':
			s.pos++
			s.space()
		default:
			return false
		}
	}
	if w.open == '{' {
		w.at = s.pos
		if w.key = s.key(); w.key == nil {
			return false
		}
	}
	w.from = s.pos
	if !s.value() {
		return false
	}
	w.value = s.data[w.from:s.pos]
	return true
}

// end takes the closing bracket and makes sure that nothing follows it.
func (w *walker) end() bool {
	w.s.pos++
	w.s.space()
	w.ok = w.s.pos == len(w.s.data)
	return false
}

// valid tells whether raw is one well-formed JSON value.
func valid(raw []byte) bool {
	s := scanner{data: raw}
	s.space()
	if !s.value() {
		return false
	}
	s.space()
	return s.pos == len(raw)
}

// member returns the value of an object's member, the last one where the name comes twice; nil if there is none.
// raw is well formed.
func member(raw []byte, name string) []byte {
	var found []byte
	for w := walkObject(raw); w.next(); {
		if string(decode(w.key)) == name {
			found = w.value
		}
	}
	return found
}

func isObject(raw []byte) bool { return len(raw) > 0 && raw[0] == '{' }
func isArray(raw []byte) bool  { return len(raw) > 0 && raw[0] == '[' }
func isString(raw []byte) bool { return len(raw) > 0 && raw[0] == '"' }
func isNull(raw []byte) bool   { return len(raw) > 0 && raw[0] == 'n' }
