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
