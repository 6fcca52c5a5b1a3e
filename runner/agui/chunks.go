package agui

// expander turns chunk events into the events that they stand for, AG-UI 1.0, section 12. Other events pass it, behind
// the ENDs that they cause.
type expander struct {
	lanes   lanes
	openers map[*stream]*opener
}

// opener is what is written again on the later events of a stream.
type opener struct {
	id, tag []byte // JSON text; tag is nil for the parent agent
	sources Event  // the range of the chunks so far
}

// expand calls emit with what source stands for, in order. On error, which is a [*MalformedError], nothing
// was emitted and the expander is as before.
func (x *expander) expand(e *event, source Event, emit func(Event)) error {
	next, err := x.lanes.sequel(e)
	if err != nil {
		return err
	}
	x.lanes.apply(next)
	for _, s := range next.closes {
		emit(x.end(s, e, source))
	}
	switch {
	case next.opens != nil:
		x.open(e, next.opens, source, emit)
	case next.goesOn != nil:
		x.content(e, next.goesOn, source, emit)
	default:
		emit(source)
	}
	return nil
}

// end writes the END of a stream, with the opener's tag (K9). It stands for all chunks of the stream: a viewer who has
// seen them ends the stream without being told, and one who has seen some of them cannot go on with what is written
// here. Nor can one who has seen all chunks but not the state event that ended them, which may move in compaction.
func (x *expander) end(s *stream, by *event, source Event) Event {
	o, shape := x.openers[s], shapes[s.kind]
	delete(x.openers, s)
	b := newBuilder(typeNames[shape.end]).raw(fieldNames[shape.id], o.id).raw("subagentRunId", o.tag)
	end := Event{First: o.sources.First, Last: o.sources.Last, Data: b.bytes()}
	if by.typ == stateSnapshot || by.typ == stateDelta {
		end.Last = max(end.Last, source.Last)
	}
	return end
}

// open writes the START of a stream (K4), and its first content if the chunk has some.
func (x *expander) open(e *event, s *stream, source Event, emit func(Event)) {
	shape := shapes[s.kind]
	o := &opener{id: e.raw(shape.id), tag: e.raw(fSubagentRunID), sources: source}
	if x.openers == nil {
		x.openers = map[*stream]*opener{}
	}
	x.openers[s] = o
	b := newBuilder(typeNames[shape.start]).raw(fieldNames[shape.id], o.id)
	switch s.kind {
	case textItem:
		b = b.str("role", *s.set[fRole]).raw("name", e.raw(fName))
	case callItem:
		b = b.raw("toolCallName", e.raw(fToolCallName)).raw("parentMessageId", e.raw(fParentMessageID))
	case thoughtItem:
		b = b.str("role", "reasoning")
	}
	b = b.raw("subagentRunId", o.tag).raw("metadata", e.raw(fMetadata))
	hasContent := e.present(fDelta) || hasRawEvent(e)
	if !hasContent {
		b = extras(b, e, s.kind)
	}
	source.Data = b.bytes()
	emit(source)
	if hasContent {
		x.content(e, s, source, emit)
	}
}

// content writes the content event of a chunk (K6, K7); a chunk with nothing to say writes none.
func (x *expander) content(e *event, s *stream, source Event, emit func(Event)) {
	o, shape := x.openers[s], shapes[s.kind]
	o.sources.First, o.sources.Last = min(o.sources.First, source.First), max(o.sources.Last, source.Last)
	more := extras(nil, e, s.kind)
	if !e.present(fDelta) && !hasRawEvent(e) && !e.present(fMetadata) && more == nil {
		return
	}
	delta, tag := e.raw(fDelta), e.raw(fSubagentRunID)
	if delta == nil {
		delta = []byte(`""`)
	}
	if tag == nil {
		tag = o.tag
	}
	b := newBuilder(typeNames[shape.content]).raw(fieldNames[shape.id], o.id).raw("delta", delta).
		raw("subagentRunId", tag).raw("metadata", e.raw(fMetadata))
	if hasRawEvent(e) {
		b = b.raw("rawEvent", e.raw(fRawEvent))
	}
	source.Data = append(b, more...).bytes()
	emit(source)
}

// hasRawEvent tells whether a provider's event is there; null is a retired way of saying no (section 17).
func hasRawEvent(e *event) bool { return e.present(fRawEvent) && !isNull(e.raw(fRawEvent)) }

// chunkFields are the members that a chunk of a kind may have; a reasoning message has one role, which is not read.
var chunkFields = [itemCount]fields{
	textItem:    commonFields | setOf(fMessageID, fRole, fName, fDelta),
	callItem:    commonFields | setOf(fToolCallID, fToolCallName, fParentMessageID, fDelta),
	thoughtItem: commonFields | setOf(fMessageID, fRole, fDelta),
}

var commonFields = setOf(fType, fTimestamp, fRawEvent, fMetadata, fSubagentRunID)

// extras adds the members of a chunk that AG-UI 1.0 does not know.
func extras(b builder, e *event, kind item) builder {
	if !e.extra && e.has&^chunkFields[kind] == 0 {
		return b
	}
	for w := walkObject(e.data); w.next(); {
		f, known := fieldsByName[string(decode(w.key))]
		if !known || chunkFields[kind]&(1<<f) == 0 {
			b = append(append(append(append(b, ','), w.key...), ':'), w.value...)
		}
	}
	return b
}
