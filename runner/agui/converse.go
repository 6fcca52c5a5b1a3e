package agui

import "bytes"

// Rules R1 to R5 and R10: what events make of messages one by one.

// set gives a value of a message a member, if there is room for it.
func (r *Reducer) set(h *held, n *node, key string, raw []byte) {
	size := bulk(raw)
	if old := n.get(key); old != nil {
		size -= old.bulk()
	} else {
		size += len(quoted(key))
	}
	if r.spend(h, size) {
		n.set(key, newNode(own(raw)))
	}
}

// spend takes n bytes for a message that is held.
func (r *Reducer) spend(h *held, n int) bool {
	if !r.budget.spend(n) {
		return false
	}
	h.size += n
	return true
}

// start is R10.
func (r *Reducer) start(e *event) {
	messages := member(e.raw(fInput), "messages")
	if !isArray(messages) {
		return
	}
	for w := walk(messages); w.next(); {
		m := readMessage(w.value)
		if !m.known || r.messages.find(decode(m.id)) != nil {
			continue
		}
		if h := hold(w.value); r.budget.spend(h.size) {
			r.messages.append(h)
		}
	}
}

// startMessage is R1 and R4.
func (r *Reducer) startMessage(e *event, role string) {
	if h := r.messages.find(e.text(fMessageID)); h != nil {
		r.merge(h, e)
		return
	}
	if given := e.text(fRole); given != nil {
		role = string(given)
	}
	h := create(e, fMessageID, role)
	h.body.set("content", newNode([]byte(`""`)))
	if name := e.raw(fName); name != nil && e.typ == textStart {
		h.body.set("name", newNode(own(name)))
	}
	if r.add(h) {
		r.merge(h, e)
	}
}

// add puts a new message behind the others, if there is room for it.
func (r *Reducer) add(h *held) bool {
	h.size = heldBytes + h.body.bulk()
	if !r.budget.spend(h.size) {
		return false
	}
	r.messages.append(h)
	return true
}

// create makes a message named by a member of the event, with the event's tag.
func create(e *event, id field, role string) *held {
	h := &held{id: string(e.text(id)), role: role, body: newNode([]byte("{}"))}
	h.body.set("id", newNode(own(e.raw(id))))
	h.body.set("role", newNode(quoted(role)))
	if raw := e.raw(fSubagentRunID); raw != nil {
		h.body.set("subagentRunId", newNode(own(raw)))
	}
	return h
}

// merge is R12 for a message; an activity takes metadata from its own events only.
func (r *Reducer) merge(h *held, e *event) {
	ofActivity := e.typ == activitySnapshot || e.typ == activityDelta
	if (h.role == "activity") == ofActivity {
		r.mergeMetadata(h, h.body, e)
	}
}

// mergeMetadata is R12 for a message or a tool call in it (AG-UI 1.0, section 5.1).
func (r *Reducer) mergeMetadata(h *held, n *node, e *event) {
	raw := e.raw(fMetadata)
	if raw == nil {
		return
	}
	old := n.get("metadata")
	if old == nil || !old.isObject() {
		r.set(h, n, "metadata", raw)
		return
	}
	for w := walkObject(raw); w.next(); {
		r.set(h, old, text(w.key), w.value)
	}
}

func (r *Reducer) continueMessage(e *event) {
	h := r.messages.find(e.text(fMessageID))
	if h == nil || h.role == "activity" {
		return
	}
	if e.typ == textContent || e.typ == thoughtContent {
		r.appendText(h, h.body, "content", e.raw(fDelta))
	}
	r.merge(h, e)
}

// appendText appends a JSON string to a string member; what is not a string counts as empty. A text that found no room once
// is not gone on with: it must have no hole.
func (r *Reducer) appendText(h *held, n *node, key string, delta []byte) {
	old := n.get(key)
	if old == nil || !isString(old.raw) {
		r.set(h, n, key, delta)
		return
	}
	if old.full || !r.spend(h, len(delta)-len(`""`)) {
		old.full = true
		return
	}
	if !old.own {
		old.raw, old.own = bytes.Clone(old.raw), true
	}
	old.raw = joined(old.raw).add(delta)
}

// startCall is R2.
func (r *Reducer) startCall(e *event) {
	if c, found := r.messages.calls[string(e.text(fToolCallID))]; found {
		call := c.node()
		if function := call.get("function"); function != nil && function.isObject() {
			r.set(c.holder, function, "name", e.raw(fToolCallName))
		}
		r.mergeMetadata(c.holder, call, e)
		return
	}
	made := newCall(e)
	h, isNew := r.holder(e)
	if isNew && !r.add(h) {
		return
	}
	if calls := h.body.get("toolCalls"); calls == nil || !calls.isArray() {
		r.set(h, h.body, "toolCalls", []byte("[]"))
	}
	calls := h.body.get("toolCalls")
	if calls == nil || !calls.isArray() || !r.spend(h, made.bulk()) {
		return
	}
	calls.open()
	r.messages.indexCall(string(e.text(fToolCallID)), call{h, len(calls.parts)})
	calls.put(len(calls.parts), part{value: made})
	r.mergeMetadata(h, made, e)
}

func newCall(e *event) *node {
	function := newNode([]byte("{}"))
	function.set("name", newNode(own(e.raw(fToolCallName))))
	function.set("arguments", newNode([]byte(`""`)))
	call := newNode([]byte("{}"))
	call.set("id", newNode(own(e.raw(fToolCallID))))
	call.set("type", newNode([]byte(`"function"`)))
	call.set("function", function)
	return call
}

// holder returns the message that is to hold a new call: the assistant message that the event names, or a new one.
func (r *Reducer) holder(e *event) (h *held, isNew bool) {
	id := fToolCallID
	if parent := e.text(fParentMessageID); parent != nil {
		h := r.messages.find(parent)
		if h != nil && h.role == "assistant" {
			return h, false
		}
		if h == nil {
			id = fParentMessageID
		}
	}
	return create(e, id, "assistant"), true
}

func (r *Reducer) continueCall(e *event) {
	c, found := r.messages.calls[string(e.text(fToolCallID))]
	if !found {
		return
	}
	call := c.node()
	if function := call.get("function"); e.typ == callArgs && function != nil && function.isObject() {
		r.appendText(c.holder, function, "arguments", e.raw(fDelta))
	}
	r.mergeMetadata(c.holder, call, e)
}

// result is R3.
func (r *Reducer) result(e *event) {
	h := create(e, fMessageID, "tool")
	h.body.set("toolCallId", newNode(own(e.raw(fToolCallID))))
	if content := e.raw(fContent); content != nil {
		h.body.set("content", newNode(own(content)))
	}
	h.size = heldBytes + h.body.bulk()
	if !r.budget.spend(h.size) {
		return
	}
	if c, found := r.messages.calls[string(e.text(fToolCallID))]; found {
		r.messages.appendResult(h, c.holder)
	} else {
		r.messages.append(h)
	}
	r.mergeMetadata(h, h.body, e)
}

// encrypted is R5.
func (r *Reducer) encrypted(e *event) {
	value := e.raw(fEncryptedValue)
	if value == nil {
		return
	}
	if string(e.text(fSubtype)) == "tool-call" {
		if c, found := r.messages.calls[string(e.text(fEntityID))]; found {
			r.set(c.holder, c.node(), "encryptedValue", value)
		}
		return
	}
	if h := r.messages.find(e.text(fEntityID)); h != nil && h.role != "activity" {
		r.set(h, h.body, "encryptedValue", value)
	}
}
