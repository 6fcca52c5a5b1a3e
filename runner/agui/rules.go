package agui

import "slices"

// Rules V6 to V22, each judged in full before anything is noted.

var openRules = [itemCount]string{textItem: "V6", thoughtItem: "V13", callItem: "V8", spanItem: "V13"}

// open takes a START event: V6, V8, V13, then V17 and V18.
func (o *opened) open(e *event, kind item) error {
	return o.openAs(e, kind, e.text(shapes[kind].id), false)
}

// openAs opens the item named id on behalf of e, which is its START or the chunk that stands for it.
func (o *opened) openAs(e *event, kind item, id []byte, chunk bool) error {
	if _, open := o.items[kind][string(id)]; open {
		return e.malformed(shapes[kind].id, openRules[kind], "%s %s is open already", itemNames[kind], short(id))
	}
	by := e.tag().owner()
	if kind == callItem {
		var err error
		if by, err = o.callOwner(e, id); err != nil {
			return err
		}
	}
	if err := o.agree(e, tableOf[kind], id); err != nil {
		return err
	}
	if _, recorded := o.owners[tableOf[kind]][string(id)]; !recorded {
		o.owners[tableOf[kind]][string(id)] = by
	}
	o.items[kind][string(id)] = o.next(chunk)
	return nil
}

// callOwner tells who owns a call that opens, by the message that carries it: V18.
func (o *opened) callOwner(e *event, id []byte) (owner, error) {
	by := e.tag()
	carrier, recorded := o.owners[messageTable][string(e.text(fParentMessageID))]
	if !recorded || e.text(fParentMessageID) == nil {
		return by.owner(), nil
	}
	if by.set && !carrier.is(by) {
		return owner{}, e.malformed(fSubagentRunID, "V18", "%s does not own message %s, which carries the call; %s does",
			by.owner(), short(e.text(fParentMessageID)), carrier)
	}
	if call, known := o.owners[callTable][string(id)]; known && !by.set && call != carrier {
		return owner{}, e.malformed(fParentMessageID, "V18", "%s owns tool call %s, but message %s belongs to %s",
			call, short(id), short(e.text(fParentMessageID)), carrier)
	}
	return carrier, nil
}

// proceed takes a CONTENT, ARGS or END event: V7, V9, V14, then V17. An END must not take an item from the stream of
// chunks that holds it: no terminal event would be legal afterwards (section 12).
func (o *opened) proceed(e *event, kind item, rule string) error {
	s := shapes[kind]
	id := e.text(s.id)
	m, open := o.items[kind][string(id)]
	if !open {
		return e.malformed(s.id, rule, "no %s %s is open", itemNames[kind], short(id))
	}
	if err := o.agree(e, tableOf[kind], id); err != nil {
		return err
	}
	if e.typ != s.end {
		return nil
	}
	if m.chunk {
		return e.malformed(s.id, "section 12", "chunks hold %s %s open", itemNames[kind], short(id))
	}
	delete(o.items[kind], string(id))
	return nil
}

// agree is V17: a tagged event names the owner on record, if there is one.
func (o *opened) agree(e *event, t table, id []byte) error {
	by := e.tag()
	if !by.set {
		return nil
	}
	if on, recorded := o.owners[t][string(id)]; recorded && !on.is(by) {
		return e.malformed(fSubagentRunID, "V17", "%s does not own %s %s; %s does", by.owner(), tableNames[t], short(id), on)
	}
	return nil
}

// result is V10. A result must not change the owner of a message that a stream of chunks holds open: the END that the
// stream ends in would be refused.
func (o *opened) result(e *event) error {
	id, by := e.text(fMessageID), e.tag()
	if m := o.items[textItem][string(id)]; m.chunk && !o.owners[messageTable][string(id)].is(by) {
		return e.malformed(fMessageID, "section 12", "chunks hold text message %s open", short(id))
	}
	o.owners[messageTable][string(id)] = by.owner()
	return nil
}

// startStep is V11.
func (o *opened) startStep(e *event) error {
	s := step{owner: e.tag().owner(), name: string(e.text(fStepName))}
	if _, open := o.steps[s]; open {
		return e.malformed(fStepName, "V11", "step %s of %s is open already", short(s.name), s.owner)
	}
	o.steps[s] = o.next(false)
	return nil
}

// finishStep is V12.
func (o *opened) finishStep(e *event) error {
	s := step{owner: e.tag().owner(), name: string(e.text(fStepName))}
	if _, open := o.steps[s]; open {
		delete(o.steps, s)
		return nil
	}
	for other := range o.steps {
		if other.name == s.name {
			return e.malformed(fSubagentRunID, "V12", "step %s is open under another owner than %s", short(s.name), s.owner)
		}
	}
	return e.malformed(fStepName, "V12", "no step %s is open", short(s.name))
}

// encrypted is V15.
func (o *opened) encrypted(e *event) error {
	id := e.text(fEntityID)
	if string(e.text(fSubtype)) == "tool-call" {
		return o.agree(e, callTable, id)
	}
	if _, recorded := o.owners[messageTable][string(id)]; recorded {
		return o.agree(e, messageTable, id)
	}
	return o.agree(e, reasoningTable, id)
}

// activity is V16 for snapshots.
func (o *opened) activity(e *event) error {
	id := e.text(fMessageID)
	_, recorded := o.owners[activityTable][string(id)]
	if !recorded || string(e.raw(fReplace)) != "false" {
		o.owners[activityTable][string(id)] = e.tag().owner()
	}
	return nil
}

// seed is V19: messages that are restated bring their owners. Those of a snapshot overwrite what is on record,
// those of an input fill what is missing. Messages of unknown role are not seen.
func (o *opened) seed(e *event, path string, messages []byte) error {
	if !isArray(messages) {
		return nil
	}
	for w := walk(messages); w.next(); {
		if m := readMessage(w.value); m.known && isNull(m.tag) {
			return &MalformedError{Type: e.typeName(), Field: path, Rule: "V19",
				Reason: "subagentRunId of a message may be absent but not null"}
		}
	}
	for w := walk(messages); w.next(); {
		if m := readMessage(w.value); m.known && isString(m.id) {
			o.seedOne(m, e.typ == messagesSnapshot)
		}
	}
	return nil
}

func (o *opened) seedOne(m message, overwrite bool) {
	by := owner{}
	if isString(m.tag) {
		by = owner{id: text(m.tag), set: true}
	}
	record := func(t table, id string) {
		if _, recorded := o.owners[t][id]; overwrite || !recorded {
			o.owners[t][id] = by
		}
	}
	switch text(m.role) {
	case "reasoning":
		record(reasoningTable, text(m.id))
	case "activity":
		record(activityTable, text(m.id))
	default:
		record(messageTable, text(m.id))
	}
	if !isArray(m.toolCalls) {
		return
	}
	for w := walk(m.toolCalls); w.next(); {
		if id := member(w.value, "id"); isString(id) {
			record(callTable, text(id))
		}
	}
}

// subagent is V21.
func (o *opened) subagent(e *event) error {
	id := string(e.text(fSubagentRunID))
	_, active := o.agents[id]
	if e.typ != subagentStarted {
		if !active {
			return e.malformed(fSubagentRunID, "V21", "no subagent %s is active", short(id))
		}
		delete(o.agents, id)
		o.gone[id] = true
		return nil
	}
	if active || o.gone[id] {
		return e.malformed(fSubagentRunID, "V21", "subagent %s was started in this run already", short(id))
	}
	if parent := e.text(fParentSubagentRunID); parent != nil {
		if _, runs := o.agents[string(parent)]; !runs && !o.gone[string(parent)] {
			return e.malformed(fParentSubagentRunID, "V21", "subagent %s was not started in this run", short(parent))
		}
	}
	o.agents[id] = o.next(false)
	return nil
}

// checkSubagent is what V22 and V21 demand of the members of the three subagent events.
func checkSubagent(e *event) error {
	for _, f := range subagentFields[e.typ-subagentStarted] {
		if raw := e.raw(f); raw != nil && !isString(raw) {
			return e.malformed(f, "V22", "it may be absent but must be a string otherwise")
		}
	}
	if err := checkSubagentOutcome(e); err != nil {
		return err
	}
	required := []field{fSubagentRunID}
	switch e.typ {
	case subagentStarted:
		required = append(required, fName)
	case subagentError:
		required = append(required, fMessage)
	}
	for _, f := range required {
		if !isString(e.raw(f)) {
			return e.malformed(f, "V21", "it must be a string")
		}
	}
	return nil
}

var subagentFields = [...][]field{
	{fDescription, fParentSubagentRunID, fParentToolCallID, fParentMessageID}, nil, {fCode},
}

func checkSubagentOutcome(e *event) error {
	raw := e.raw(fOutcome)
	if raw == nil || e.typ != subagentFinished {
		return nil
	}
	kind := member(raw, "type")
	if !isString(kind) || !slices.Contains([]string{"success", "suspended"}, text(kind)) {
		return e.malformed(fOutcome, "V22", "its type must be success or suspended")
	}
	ids := member(raw, "interruptIds")
	if ids == nil {
		return nil
	}
	if !isArray(ids) {
		return e.malformed(fOutcome, "V22", "interruptIds may be absent but must be an array otherwise")
	}
	for w := walk(ids); w.next(); {
		if !isString(w.value) {
			return e.malformed(fOutcome, "V22", "interruptIds must hold strings only")
		}
	}
	return nil
}
