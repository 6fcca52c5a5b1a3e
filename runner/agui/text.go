package agui

import (
	"bytes"
	"unicode/utf8"
)

// decode returns the text of a JSON string, without a copy where nothing in it is escaped. A surrogate half without
// its other half is kept in the three bytes of generalized UTF-8. raw is well formed, quotes included; what is not a
// string, or absent, has no text.
func decode(raw []byte) []byte {
	if !isString(raw) {
		return nil
	}
	in := raw[1 : len(raw)-1]
	i := bytes.IndexByte(in, '\\')
	if i < 0 {
		return in
	}
	out := append(make([]byte, 0, len(in)), in[:i]...)
	for i < len(in) {
		if in[i] != '\\' {
			out = append(out, in[i])
			i++
			continue
		}
		if in[i+1] != 'u' {
			out = append(out, unescaped[in[i+1]])
			i += 2
			continue
		}
		r, n := codePoint(in[i:])
		out = appendRune(out, r)
		i += n
	}
	return out
}

// text is decode as a string.
func text(raw []byte) string { return string(decode(raw)) }

var unescaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// codePoint reads \uXXXX, or the two of them that make a pair, and returns the length of what it read.
func codePoint(in []byte) (rune, int) {
	r, _ := hex4(in[2:])
	if r < 0xd800 || r > 0xdbff || len(in) < 12 || in[6] != '\\' || in[7] != 'u' {
		return r, 6
	}
	low, ok := hex4(in[8:])
	if !ok || low < 0xdc00 || low > 0xdfff {
		return r, 6
	}
	return (r-0xd800)<<10 + (low - 0xdc00) + 0x10000, 12
}

func hex4(d []byte) (rune, bool) {
	if len(d) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range d[:4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// appendRune is utf8.AppendRune, except that surrogate halves keep their value.
func appendRune(dst []byte, r rune) []byte {
	if 0xd800 <= r && r <= 0xdfff {
		return append(dst, 0xed, 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f)
	}
	return utf8.AppendRune(dst, r)
}

const hexDigits = "0123456789abcdef"

// appendQuoted appends s as a JSON string: nothing is escaped that JSON does not require, surrogate halves get their
// escapes back, and bytes that are not UTF-8 become U+FFFD.
func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			dst = appendASCII(dst, c)
			i++
			continue
		}
		if half, ok := surrogate(s[i:]); ok {
			dst = append(dst, '\\', 'u', 'd', hexDigits[half>>8&15], hexDigits[half>>4&15], hexDigits[half&15])
			i += 3
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		dst = utf8.AppendRune(dst, r)
		i += n
	}
	return append(dst, '"')
}

func appendASCII(dst []byte, c byte) []byte {
	switch {
	case c == '"' || c == '\\':
		return append(dst, '\\', c)
	case c == '\n':
		return append(dst, '\\', 'n')
	case c == '\r':
		return append(dst, '\\', 'r')
	case c == '\t':
		return append(dst, '\\', 't')
	case c < 0x20:
		return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
	}
	return append(dst, c)
}

// surrogate recognises a surrogate half as appendRune writes it.
func surrogate(s string) (rune, bool) {
	if len(s) < 3 || s[0] != 0xed || s[1] < 0xa0 || s[1] > 0xbf || s[2]&0xc0 != 0x80 {
		return 0, false
	}
	return 0xd000 | rune(s[1]&0x3f)<<6 | rune(s[2]&0x3f), true
}

// quoted is appendQuoted on its own.
func quoted(s string) []byte { return appendQuoted(make([]byte, 0, len(s)+2), s) }
