package agui

// Expand returns the events with their chunks expanded, and the error of the first one that is refused, for tests of
// the expansion by itself. It leaves what else the events hold unjudged.
func Expand(events [][]byte) ([][]byte, error) {
	var out [][]byte
	var x expander
	for _, data := range events {
		e, err := scanned(data)
		if err != nil {
			return out, err
		}
		if err := x.expand(&e, Event{Data: data}, func(made Event) {
			out = append(out, made.Data)
		}); err != nil {
			return out, err
		}
	}
	return out, nil
}

// Counted returns what a reducer counts for everything that it holds, and what that comes to when it is counted afresh.
func Counted(r *Reducer) (used, afresh int) {
	for h := r.messages.first; h != nil; h = h.next {
		afresh += heldBytes + h.body.bulk()
	}
	if r.state != nil {
		afresh += r.state.root.bulk()
	}
	return r.budget.used, afresh
}
