package agui

import "bytes"

// Reducer builds the messages and the state that a stream of events amounts to, by rules R1 to R12 of AG-UI 1.0. It
// expands chunks by itself and takes the events as they are: what it does not know it ignores, and it does not judge
// whether the stream is legal.
//
// What it holds is bounded by MaxBytes, whatever the events make of it: a few copies in patches can double a state over and
// over. A snapshot, a patch or a message for which there is no room is left out like a patch that fails, a text ends where
// room ends, and [Reducer.Truncated] says so. The time that it takes grows with the length of the stream, not with its
// square; only a MESSAGES_SNAPSHOT takes time for each message held, and a patch for each neighbour that it moves.
//
// The events may be freed after Apply: what is kept of them is copied. The zero Reducer holds no messages and the state
// {}. A Reducer is not safe for concurrent use.
type Reducer struct {
	// MaxBytes bounds messages and state together, as they take room in memory: a value counts for 128 bytes beside its
	// text, and a message for 512. Default [DefaultMaxBytes]. It is set before the first Apply.
	MaxBytes int
	// NoMessages and NoState make the Reducer pass over what only concerns the one or the other.
	NoMessages, NoState bool

	chunks   expander
	messages roster
	state    *document
	pending  []byte
	running  bool
	budget   budget
}

// NewReducer returns a Reducer that starts from a JSON array of messages and a JSON value. Either may be nil. The error
// is a [*MalformedError].
func NewReducer(messages, state []byte) (*Reducer, error) {
	r := &Reducer{messages: newRoster()}
	if messages != nil {
		if !valid(messages) || !isArray(messages) {
			return nil, &MalformedError{Field: "messages", Rule: "section 5.2", Reason: "they must be a JSON array"}
		}
		for w := walk(messages); w.next(); {
			h := hold(w.value)
			r.messages.append(h)
			r.budget.used += h.size
		}
	}
	if state != nil {
		if !valid(state) {
			return nil, &MalformedError{Field: "state", Rule: "section 5.5", Reason: "it must be a JSON value"}
		}
		r.state = &document{root: newNode(own(bytes.TrimSpace(state)))}
		r.budget.used += r.state.root.bulk()
	}
	return r, nil
}

// hold makes a message of its JSON text.
func hold(raw []byte) *held {
	m := readMessage(raw)
	h := &held{known: m.known, size: heldBytes + bulk(raw), body: newNode(own(raw))}
	if isString(m.id) {
		h.id = text(m.id)
	}
	if isString(m.role) {
		h.role = text(m.role)
	}
	return h
}

// Messages returns the messages as a JSON array.
func (r *Reducer) Messages() []byte {
	out := []byte{'['}
	for h := r.messages.first; h != nil; h = h.next {
		if h != r.messages.first {
			out = append(out, ',')
		}
		out = h.body.append(out)
	}
	return append(out, ']')
}

// State returns the state as JSON.
func (r *Reducer) State() []byte {
	if r.state == nil {
		return []byte("{}")
	}
	return r.state.root.append(nil)
}

// Pending returns the JSON array of the interrupts that wait for an answer; nil if there are none.
func (r *Reducer) Pending() []byte { return r.pending }

// Running tells whether the last run that began has not ended.
func (r *Reducer) Running() bool { return r.running }

// Truncated tells whether something was left out because MaxBytes did not leave room for it.
func (r *Reducer) Truncated() bool { return r.budget.exceeded }

// Apply takes the next event. The error is a [*MalformedError], and the event then had no effect.
func (r *Reducer) Apply(event []byte) error {
	e, err := parsed(event)
	if err != nil {
		return err
	}
	if r.messages.byID == nil {
		r.messages = newRoster()
	}
	if r.budget.max = r.MaxBytes; r.MaxBytes == 0 {
		r.budget.max = DefaultMaxBytes
	}
	r.budget.taken += len(event)
	return r.chunks.expand(&e, Event{Data: event}, func(made Event) {
		if &made.Data[0] == &event[0] {
			r.apply(&e)
			return
		}
		if m, err := scanned(made.Data); err == nil {
			_ = m.check() // only to have null and unknown material out of sight
			r.apply(&m)
		}
	})
}

func (r *Reducer) apply(e *event) {
	switch e.typ {
	case runStarted:
		r.running = true
	case runFinished:
		r.running, r.pending = false, stepOf(e).Interrupts
	case runError:
		r.running = false
	case stateSnapshot:
		r.restateState(e)
	case stateDelta:
		r.patchState(e)
	}
	if !r.NoMessages {
		r.applyToMessages(e)
	}
}

func (r *Reducer) applyToMessages(e *event) {
	switch e.typ {
	case runStarted:
		r.start(e)
	case textStart:
		r.startMessage(e, "assistant")
	case thoughtStart:
		r.startMessage(e, "reasoning")
	case textContent, textEnd, thoughtContent, thoughtEnd:
		r.continueMessage(e)
	case callStart:
		r.startCall(e)
	case callArgs, callEnd:
		r.continueCall(e)
	case callResult:
		r.result(e)
	case encryptedValue:
		r.encrypted(e)
	case messagesSnapshot:
		r.restate(e)
	case activitySnapshot:
		r.activity(e)
	case activityDelta:
		r.patchActivity(e)
	}
}

// restateState is R6 for snapshots.
func (r *Reducer) restateState(e *event) {
	if r.NoState {
		return
	}
	raw, old := e.raw(fSnapshot), 0
	if r.state != nil {
		old = r.state.root.bulk()
	}
	if r.budget.spend(bulk(raw) - old) {
		r.state = &document{root: newNode(own(raw))}
	}
}

// patchState is R6 for deltas.
func (r *Reducer) patchState(e *event) {
	if r.NoState {
		return
	}
	if r.state == nil {
		r.state = &document{root: newNode([]byte("{}"))}
		r.budget.used += nodeBytes
	}
	r.budget.patch(r.state, e.raw(fDelta)) // what does not apply changes nothing
}
