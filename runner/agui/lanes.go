package agui

import "slices"

// lanes are the open streams of chunks, at most one per producer: AG-UI 1.0, section 12.
type lanes struct {
	open []*stream // in the order of opening
}

// stream is one item that chunks hold open.
type stream struct {
	kind item
	lane owner
	id   string
	set  [fieldCount]*string // what its opener said of role, name, toolCallName, parentMessageId
}

// sequel is what an event does to the streams: it closes some, then opens or continues one.
type sequel struct {
	closes []*stream
	opens  *stream
	goesOn *stream
}

// sequel tells what an event does by rules K1 to K5 and K8. It changes nothing; apply does.
func (l *lanes) sequel(e *event) (sequel, error) {
	kind, isChunk := chunkItem(e.typ)
	if !isChunk {
		return sequel{closes: l.closedBy(e)}, nil
	}
	at, err := l.laneOf(e, kind)
	if err != nil {
		return sequel{}, err
	}
	id, current := e.text(shapes[kind].id), l.in(at)
	if current != nil && current.kind == kind && (id == nil || string(id) == current.id) {
		return sequel{goesOn: current}, current.agree(e)
	}
	s, err := opens(e, kind, at)
	if err != nil {
		return sequel{}, err
	}
	if current != nil {
		return sequel{closes: []*stream{current}, opens: s}, nil
	}
	return sequel{opens: s}, nil
}

func (l *lanes) apply(s sequel) {
	for _, gone := range s.closes {
		l.open = slices.DeleteFunc(l.open, func(o *stream) bool { return o == gone })
	}
	if s.opens != nil {
		l.open = append(l.open, s.opens)
	}
}

func (l *lanes) in(lane owner) *stream {
	for _, s := range l.open {
		if s.lane == lane {
			return s
		}
	}
	return nil
}

// laneOf is K2: where a chunk belongs.
func (l *lanes) laneOf(e *event, kind item) (owner, error) {
	by := e.tag()
	if id := e.text(shapes[kind].id); id != nil {
		for _, s := range l.open {
			if s.kind != kind || s.id != string(id) {
				continue
			}
			if by.set && !s.lane.is(by) {
				return owner{}, e.malformed(fSubagentRunID, "K2", "%s %s was opened by %s", itemNames[kind], short(id), s.lane)
			}
			return s.lane, nil
		}
		return by.owner(), nil
	}
	if by.set {
		return by.owner(), nil
	}
	var found []*stream
	for _, s := range l.open {
		if s.kind == kind {
			found = append(found, s)
		}
	}
	if len(found) == 0 || slices.ContainsFunc(found, func(s *stream) bool { return !s.lane.set }) {
		return owner{}, nil
	}
	if len(found) > 1 {
		return owner{}, e.malformed(shapes[kind].id, "K2", "%d lanes have an open %s, and the chunk names none of them",
			len(found), itemNames[kind])
	}
	return found[0].lane, nil
}

// openerFields are what a START says beside the id, and what later chunks of the stream must not contradict.
var openerFields = [itemCount][]field{
	textItem: {fRole, fName}, callItem: {fToolCallName, fParentMessageID},
}

// opens is K4: a chunk that begins a stream.
func opens(e *event, kind item, lane owner) (*stream, error) {
	f := shapes[kind].id
	id := e.text(f)
	if id == nil {
		return nil, e.malformed(f, "K4", "the first chunk of a %s needs it", itemNames[kind])
	}
	if kind == callItem && !e.present(fToolCallName) {
		return nil, e.malformed(fToolCallName, "K4", "the first chunk of a tool call needs it")
	}
	s := &stream{kind: kind, lane: lane, id: string(id)}
	for _, f := range openerFields[kind] {
		if e.present(f) {
			value := string(e.text(f))
			s.set[f] = &value
		}
	}
	if role := "assistant"; kind == textItem && s.set[fRole] == nil {
		s.set[fRole] = &role
	}
	return s, nil
}

// agree is K5: what a chunk repeats is what the opener said.
func (s *stream) agree(e *event) error {
	for _, f := range openerFields[s.kind] {
		if !e.present(f) {
			continue
		}
		if said := s.set[f]; said == nil || *said != string(e.text(f)) {
			return e.malformed(f, "K5", "it is not what the first chunk of %s %s said", itemNames[s.kind], short(s.id))
		}
	}
	return nil
}

// closedBy is K8: the streams that an event other than a chunk closes, before it takes effect itself.
func (l *lanes) closedBy(e *event) []*stream {
	if len(l.open) == 0 {
		return nil
	}
	switch e.typ {
	case runStarted, runFinished, runError, messagesSnapshot:
		return slices.Clone(l.open)
	case unknownType, rawEvent, activitySnapshot, activityDelta, encryptedValue, subagentStarted:
		return nil
	}
	if s := l.in(e.tag().owner()); s != nil {
		return []*stream{s}
	}
	return nil
}
