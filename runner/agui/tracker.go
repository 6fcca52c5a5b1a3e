package agui

import "bytes"

// Tracker follows the life of one run, event by event, by sections 8, 10, 11 and 12 of AG-UI 1.0: what is open, and
// whether an event may come next. Chunks count as the events that they stand for. A Tracker is not safe for
// concurrent use.
type Tracker struct {
	threadID, runID string
	started         bool
	stream          Verifier
	lanes           lanes
	created         []string
	known           map[string]bool
	calls           calls
}

// NewTracker returns the tracker of a run that has sent nothing.
func NewTracker(threadID, runID string) *Tracker {
	return &Tracker{threadID: threadID, runID: runID, known: map[string]bool{}}
}

// Step is what an event means to its run.
type Step struct {
	Type       string
	Terminal   bool   // the event ended the run
	Outcome    string // of RUN_FINISHED: "success", "interrupt" or "cancelled"; an unknown outcome reads as success
	Interrupts []byte // of RUN_FINISHED with an interrupt: their JSON array; otherwise nil
	Code       string // of RUN_ERROR; may be empty
	Message    string // of RUN_ERROR
	Usage      []byte // of RUN_FINISHED and RUN_ERROR: the JSON array as it came; nil if there is none (section 5.7)
	// Pending is the pendingToolCallIds of a RUN_FINISHED that succeeded; nil if it has none.
	Pending []string
}

// Observe judges the run's next event and notes it. A [*MalformedError] means that the event must not
// be recorded; the tracker is then as if it had never come. Beside the verification rules, the run's only RUN_STARTED
// and its RUN_FINISHED must name the thread and run that the tracker was made for (section 11). A first event that is
// not RUN_STARTED or RUN_ERROR violates V1; see [Tracker.Started].
func (t *Tracker) Observe(event []byte) (Step, error) {
	e, err := parsed(event)
	if err != nil {
		return Step{}, err
	}
	if err := t.boundary(&e); err != nil {
		return Step{}, err
	}
	if err := t.stream.admit(&e); err != nil {
		return Step{}, err
	}
	next, err := t.lanes.sequel(&e)
	if err != nil {
		return Step{}, err
	}
	if err := t.take(&e, next); err != nil {
		return Step{}, err
	}
	t.lanes.apply(next)
	t.note(&e, next)
	return stepOf(&e), nil
}

func parsed(data []byte) (e event, err error) {
	err = e.parse(data)
	return e, err
}

// boundary compares the ids of the two boundary events with the run's.
func (t *Tracker) boundary(e *event) error {
	if e.typ != runStarted && e.typ != runFinished {
		return nil
	}
	if e.typ == runStarted && t.started {
		return e.malformed(fType, "V4", "the run has started already")
	}
	if id := e.text(fThreadID); string(id) != t.threadID {
		return e.malformed(fThreadID, "section 11", "it names thread %s, but the run belongs to thread %s",
			short(id), short(t.threadID))
	}
	if id := e.text(fRunID); string(id) != t.runID {
		return e.malformed(fRunID, "section 11", "it names run %s, but the run is %s", short(id), short(t.runID))
	}
	return nil
}

// take lets the streams of chunks that the event closes go, and judges the event after that. If it is refused they
// are put back.
func (t *Tracker) take(e *event, next sequel) error {
	run := t.stream.run
	closed := make([]mark, len(next.closes))
	for i, s := range next.closes {
		closed[i] = run.items[s.kind][s.id]
		delete(run.items[s.kind], s.id)
	}
	var err error
	switch s := next.opens; {
	case s != nil:
		err = run.openAs(e, s.kind, []byte(s.id), true)
	case next.goesOn == nil:
		err = t.stream.take(e)
	}
	if err != nil {
		for i, s := range next.closes {
			run.items[s.kind][s.id] = closed[i]
		}
	}
	return err
}

// note keeps what outlives the event: the ids of messages, and the tool calls.
func (t *Tracker) note(e *event, next sequel) {
	switch e.typ {
	case runStarted:
		t.started = true
	case callResult:
		t.create(e.text(fMessageID))
		t.calls.answer(e.text(fToolCallID))
	case textStart, thoughtStart, activitySnapshot, activityDelta:
		t.create(e.text(fMessageID))
	case textChunk, thoughtChunk:
		if next.opens != nil {
			t.create(e.text(fMessageID))
		}
	case callStart, callChunk:
		if e.typ == callChunk && next.opens == nil {
			return
		}
		t.calls.open(e.text(fToolCallID), e.text(fToolCallName))
		if parent := e.text(fParentMessageID); parent != nil {
			t.create(parent)
			return
		}
		t.create(e.text(fToolCallID))
	case messagesSnapshot:
		for w := walk(e.raw(fMessages)); w.next(); {
			m := readMessage(w.value)
			if isString(m.id) {
				t.create(decode(m.id))
			}
			if text(m.role) == "tool" {
				t.calls.answer(decode(member(w.value, "toolCallId")))
			}
		}
	}
}

func (t *Tracker) create(id []byte) {
	if !t.known[string(id)] {
		t.known[string(id)] = true
		t.created = append(t.created, string(id))
	}
}

func stepOf(e *event) Step {
	s := Step{Type: e.typeName()}
	if e.typ == runFinished || e.typ == runError {
		s.Terminal = true
		if usage := member(e.data, "usage"); isArray(usage) {
			s.Usage = bytes.Clone(usage)
		}
	}
	switch e.typ {
	case runFinished:
		s.Outcome = "success"
		if raw := e.raw(fOutcome); raw != nil {
			s.Outcome = text(member(raw, "type"))
			switch s.Outcome {
			case "interrupt":
				s.Interrupts = bytes.Clone(member(raw, "interrupts"))
			case "success":
				s.Pending = texts(member(raw, "pendingToolCallIds"))
			}
		}
	case runError:
		s.Code, s.Message = string(e.text(fCode)), string(e.text(fMessage))
	}
	return s
}

// Started tells whether the run's RUN_STARTED was observed.
func (t *Tracker) Started() bool { return t.started }

// Closers returns the events that close everything the run has open, in the order of section 8, for use before its
// RUN_FINISHED or RUN_ERROR. Observing them in order is legal. They carry no subagentRunId unless it names what they
// close. Chunks need no closer: the terminal event ends them.
func (t *Tracker) Closers() [][]byte {
	if t.stream.phase != phaseActive {
		return nil
	}
	return t.stream.run.closers()
}

// Created returns the ids of the messages that the run created or named so far, each once, in the order of their
// coming: of text, reasoning, result and activity messages, of the holders of tool calls (parentMessageId, or
// toolCallId where none was given), and of the messages of a MESSAGES_SNAPSHOT (AG-UI 1.0, section 18). The messages
// of the run's own input are not among them.
func (t *Tracker) Created() []string { return append([]string(nil), t.created...) }
