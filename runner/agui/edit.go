package agui

import "bytes"

// MapMembers returns a JSON object with what fn makes of its members: the value that it returns, or no such member for nil.
// Values that fn returns as they are stay so byte for byte, and an object of which nothing is changed is returned itself,
// as is whatever is no object.
func MapMembers(object []byte, fn func(name string, value []byte) []byte) []byte {
	return mapped(walkObject(object), object, func(w *walker) (key, value []byte) {
		return w.key, fn(text(w.key), w.value)
	})
}

// MapElements is [MapMembers] for the elements of an array.
func MapElements(array []byte, fn func(element []byte) []byte) []byte {
	if trimmed := bytes.TrimLeft(array, " \t\r\n"); !isArray(trimmed) {
		return array
	}
	return mapped(walk(array), array, func(w *walker) (key, value []byte) { return nil, fn(w.value) })
}

func mapped(w walker, raw []byte, fn func(*walker) (key, value []byte)) []byte {
	var out []byte
	changed := false
	for w.next() {
		key, value := fn(&w)
		if !bytes.Equal(value, w.value) {
			changed = true
		}
		if value == nil {
			continue
		}
		if len(out) > 0 {
			out = append(out, ',')
		}
		if key != nil {
			out = append(append(out, key...), ':')
		}
		out = append(out, value...)
	}
	if !w.ok || !changed {
		return raw
	}
	return append(append(append(make([]byte, 0, len(out)+2), w.open), out...), w.open+2)
}

// WithMember returns a JSON object in which a member has that value; one that was not there is added at its end. Everything
// else is as it was, byte for byte. What is no object is returned as it is.
func WithMember(object []byte, name string, value []byte) []byte {
	if isEmpty(object) {
		return append(append(append(appendQuoted([]byte{'{'}, name), ':'), value...), '}')
	}
	out, err := replaced(object, map[string][]byte{name: value})
	if err != nil {
		return object
	}
	return out
}

// isEmpty tells whether raw is an object without members.
func isEmpty(raw []byte) bool {
	w := walkObject(raw)
	return !w.next() && w.ok
}
