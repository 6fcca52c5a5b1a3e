package agui

// Member is a member of a JSON object, by where it stands in the object's text.
type Member struct {
	Name     []byte // decoded
	At       int    // where its name begins, with the quote
	From, To int    // where its value begins, and what follows it
}

// AppendMembers appends the members of a JSON object, as they come; of those with one name the last counts. ok is false if
// the text is not one well-formed object and nothing else. The names are good for as long as the text does not change.
func AppendMembers(dst []Member, object []byte) (members []Member, ok bool) {
	w := walkObject(object)
	for w.next() {
		dst = append(dst, Member{Name: decode(w.key), At: w.at, From: w.from, To: w.from + len(w.value)})
	}
	return dst, w.ok
}

// Text decodes a JSON string: surrogate halves without their other half stay in the three bytes of generalized UTF-8. It is
// nil for any other JSON value.
func Text(value []byte) []byte { return decode(value) }
