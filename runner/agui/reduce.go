package agui

import (
	"bytes"
	"slices"
)

// Reducer builds the messages and the state that a stream of events amounts to, by rules R1 to R12 of AG-UI 1.0. It
// expands chunks by itself and takes the events as they are: what it does not know it ignores, and it
// does not judge whether the stream is legal. Nor does it limit what copies in patches make of a state or an activity,
// which a few events can double over and over, so it is for events that are trusted, as in tests; threadcast itself
// serves records without one. The zero Reducer holds no messages and the state {}. A Reducer
// is not safe for concurrent use.
type Reducer struct {
	chunks   expander
	messages []*held
	state    *document
	pending  []byte
}

// held is a message that a Reducer holds.
type held struct {
	id, role string
	known    bool  // the role is one of AG-UI 1.0
	body     *node // the whole message
}

// NewReducer returns a Reducer that starts from a JSON array of messages and a JSON value. Either may be nil. The error
// is a [*MalformedError].
func NewReducer(messages, state []byte) (*Reducer, error) {
	r := &Reducer{}
	if messages != nil {
		if !valid(messages) || !isArray(messages) {
			return nil, &MalformedError{Field: "messages", Rule: "section 5.2", Reason: "they must be a JSON array"}
		}
		for w := walk(messages); w.next(); {
			r.messages = append(r.messages, hold(w.value))
		}
	}
	if state != nil {
		if !valid(state) {
			return nil, &MalformedError{Field: "state", Rule: "section 5.5", Reason: "it must be a JSON value"}
		}
		r.state = &document{root: newNode(bytes.TrimSpace(state))}
	}
	return r, nil
}

func hold(raw []byte) *held {
	m := readMessage(raw)
	h := &held{known: m.known, body: newNode(raw)}
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
	for i, h := range r.messages {
		if i > 0 {
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
	return bytes.Clone(r.state.root.bytes())
}

// Pending returns the JSON array of the interrupts that wait for an answer; nil if there are none.
func (r *Reducer) Pending() []byte { return r.pending }

// Apply takes the next event. The error is a [*MalformedError], and the event then had no effect.
func (r *Reducer) Apply(event []byte) error {
	e, err := parsed(event)
	if err != nil {
		return err
	}
	return r.chunks.expand(&e, Event{Data: event}, func(made Event) {
		if m, err := scanned(made.Data); err == nil {
			_ = m.check() // only to have null and unknown material out of sight
			r.apply(&m)
		}
	})
}

func (r *Reducer) apply(e *event) {
	switch e.typ {
	case runStarted:
		r.start(e)
	case runFinished:
		r.pending = stepOf(e).Interrupts
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
	case stateSnapshot:
		r.state = &document{root: newNode(e.raw(fSnapshot))}
	case stateDelta:
		r.patchState(e)
	case messagesSnapshot:
		r.restate(e)
	case activitySnapshot:
		r.activity(e)
	case activityDelta:
		r.patchActivity(e)
	}
}

func (r *Reducer) find(id []byte) *held {
	for _, h := range r.messages {
		if h.id == string(id) {
			return h
		}
	}
	return nil
}

// start is R10.
func (r *Reducer) start(e *event) {
	messages := member(e.raw(fInput), "messages")
	if !isArray(messages) {
		return
	}
	for w := walk(messages); w.next(); {
		if h := hold(w.value); h.known && r.find([]byte(h.id)) == nil {
			r.messages = append(r.messages, h)
		}
	}
}

// startMessage is R1 and R4.
func (r *Reducer) startMessage(e *event, role string) {
	h := r.find(e.text(fMessageID))
	if h == nil {
		if given := e.text(fRole); given != nil {
			role = string(given)
		}
		h = create(e, fMessageID, role)
		h.body.set("content", newNode([]byte(`""`)))
		if name := e.raw(fName); name != nil && e.typ == textStart {
			h.body.set("name", newNode(name))
		}
		r.messages = append(r.messages, h)
	}
	h.merge(e)
}

// create makes a message named by a member of the event, with the event's tag.
func create(e *event, id field, role string) *held {
	h := &held{id: string(e.text(id)), role: role, body: newNode([]byte("{}"))}
	h.body.set("id", newNode(e.raw(id)))
	h.body.set("role", newNode(quoted(role)))
	setTag(h.body, e)
	return h
}

func setTag(body *node, e *event) {
	if raw := e.raw(fSubagentRunID); raw != nil {
		body.set("subagentRunId", newNode(raw))
	}
}

// merge is R12 for a message; an activity takes metadata from its own events only.
func (h *held) merge(e *event) {
	ofActivity := e.typ == activitySnapshot || e.typ == activityDelta
	if (h.role == "activity") == ofActivity {
		mergeMetadata(h.body, e)
	}
}

func mergeMetadata(body *node, e *event) {
	raw := e.raw(fMetadata)
	if raw == nil {
		return
	}
	var m metadataMerge
	if old := body.get("metadata"); old != nil && old.isObject() {
		m.add(old.bytes())
	}
	m.add(raw)
	body.set("metadata", newNode(bytes.Clone(m.bytes())))
}

func (r *Reducer) continueMessage(e *event) {
	h := r.find(e.text(fMessageID))
	if h == nil || h.role == "activity" {
		return
	}
	if e.typ == textContent || e.typ == thoughtContent {
		h.body.appendText("content", e.raw(fDelta))
	}
	h.merge(e)
}

// appendText appends a JSON string to a string member; what is not a string counts as empty.
func (n *node) appendText(key string, delta []byte) {
	old := n.get(key)
	if old == nil || !isString(old.raw) {
		n.set(key, newNode(joined(nil).add(delta)))
		return
	}
	if !old.own {
		old.raw, old.own = joined(nil).add(old.raw), true
	}
	old.raw = joined(old.raw).add(delta)
}

// findCall returns the first tool call of a name, and the message that holds it.
func (r *Reducer) findCall(id []byte) (*held, *node) {
	for _, h := range r.messages {
		if calls := h.body.get("toolCalls"); calls != nil && calls.isArray() {
			calls.open()
			for _, p := range calls.parts {
				if p.value.textOf("id") == string(id) {
					return h, p.value
				}
			}
		}
	}
	return nil, nil
}

func (n *node) textOf(key string) string {
	if v := n.get(key); v != nil && isString(v.raw) {
		return text(v.raw)
	}
	return ""
}

// startCall is R2.
func (r *Reducer) startCall(e *event) {
	if _, call := r.findCall(e.text(fToolCallID)); call != nil {
		if function := call.get("function"); function != nil && function.isObject() {
			function.set("name", newNode(e.raw(fToolCallName)))
		}
		mergeMetadata(call, e)
		return
	}
	h := r.holder(e)
	calls := h.body.get("toolCalls")
	if calls == nil || !calls.isArray() {
		calls = newNode([]byte("[]"))
		h.body.set("toolCalls", calls)
	}
	calls.open()
	function := newNode([]byte("{}"))
	function.set("name", newNode(e.raw(fToolCallName)))
	function.set("arguments", newNode([]byte(`""`)))
	call := newNode([]byte("{}"))
	call.set("id", newNode(e.raw(fToolCallID)))
	call.set("type", newNode([]byte(`"function"`)))
	call.set("function", function)
	mergeMetadata(call, e)
	calls.put(len(calls.parts), part{value: call})
}

// holder returns the message that is to hold a new call: the assistant message that the event names, or a new one.
func (r *Reducer) holder(e *event) *held {
	id := fToolCallID
	if parent := e.text(fParentMessageID); parent != nil {
		h := r.find(parent)
		if h != nil && h.role == "assistant" {
			return h
		}
		if h == nil {
			id = fParentMessageID
		}
	}
	h := create(e, id, "assistant")
	r.messages = append(r.messages, h)
	return h
}

func (r *Reducer) continueCall(e *event) {
	_, call := r.findCall(e.text(fToolCallID))
	if call == nil {
		return
	}
	if function := call.get("function"); e.typ == callArgs && function != nil && function.isObject() {
		function.appendText("arguments", e.raw(fDelta))
	}
	mergeMetadata(call, e)
}

// result is R3.
func (r *Reducer) result(e *event) {
	h := create(e, fMessageID, "tool")
	h.body.set("toolCallId", newNode(e.raw(fToolCallID)))
	if content := e.raw(fContent); content != nil {
		h.body.set("content", newNode(content))
	}
	mergeMetadata(h.body, e)
	at := len(r.messages)
	if holder, _ := r.findCall(e.text(fToolCallID)); holder != nil {
		at = slices.Index(r.messages, holder) + 1
		for at < len(r.messages) && r.messages[at].role == "tool" {
			at++
		}
	}
	r.messages = slices.Insert(r.messages, at, h)
}

// encrypted is R5.
func (r *Reducer) encrypted(e *event) {
	value := e.raw(fEncryptedValue)
	if value == nil {
		return
	}
	if string(e.text(fSubtype)) == "tool-call" {
		if _, call := r.findCall(e.text(fEntityID)); call != nil {
			call.set("encryptedValue", newNode(value))
		}
		return
	}
	if h := r.find(e.text(fEntityID)); h != nil && h.role != "activity" {
		h.body.set("encryptedValue", newNode(value))
	}
}

// patchState is R6 for deltas.
func (r *Reducer) patchState(e *event) {
	if r.state == nil {
		r.state = &document{root: newNode([]byte("{}"))}
	}
	if ops, ok := parsePatch(e.raw(fDelta)); ok {
		_ = r.state.patch(ops) // what does not apply changes nothing
	}
}
