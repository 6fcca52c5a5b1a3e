package agui

import "strings"

// phase is where a stream stands, AG-UI 1.0, section 8.
type phase uint8

const (
	phaseNew phase = iota
	phaseActive
	phaseFinished
	phaseFailed
)

// Verifier is the life of a stream of runs by rules V1 to V24 of AG-UI 1.0. Chunk events pass it unjudged, as the
// rules have it; [Tracker] and [Compact] expand them. It does not compare ids of runs or threads. The zero Verifier
// stands before the first event.
type Verifier struct {
	phase phase
	run   *opened
}

// Verify judges the next event. The error is a [*MalformedError] that names the rule; the event then
// counts as not sent.
func (v *Verifier) Verify(event []byte) error {
	e, err := scanned(event)
	if err != nil {
		return err
	}
	if err := v.admit(&e); err != nil {
		return err
	}
	return v.take(&e)
}

func scanned(data []byte) (e event, err error) {
	err = e.scan(data)
	return e, err
}

// owners of what an event may belong to.
type table uint8

const (
	messageTable table = iota
	callTable
	activityTable
	reasoningTable
	tableCount
)

var tableNames = [tableCount]string{"message", "tool call", "activity", "reasoning message"}

// tableOf is the table of an item's owner; a span and a reasoning message share one.
var tableOf = [itemCount]table{
	textItem: messageTable, thoughtItem: reasoningTable, callItem: callTable, spanItem: reasoningTable,
}

// mark is what is known of something open.
type mark struct {
	order int  // of opening, within the run
	chunk bool // a stream of chunks holds it
}

type step struct {
	owner owner
	name  string
}

// opened is what one run has opened, and who owns what in it. Owners outlive the closing.
type opened struct {
	items  [itemCount]map[string]mark
	steps  map[step]mark
	agents map[string]mark // subagents that run
	gone   map[string]bool // subagents that ended
	owners [tableCount]map[string]owner
	count  int
}

func newOpened() *opened {
	o := &opened{steps: map[step]mark{}, agents: map[string]mark{}, gone: map[string]bool{}}
	for i := range o.items {
		o.items[i] = map[string]mark{}
	}
	for i := range o.owners {
		o.owners[i] = map[string]owner{}
	}
	return o
}

func (o *opened) next(chunk bool) mark {
	o.count++
	return mark{order: o.count, chunk: chunk}
}

// admit judges the event's place in the stream: V2, V3, V1, V4, then V5, which holds for the types that a consumer
// knows.
func (v *Verifier) admit(e *event) error {
	start, failure := e.typ == runStarted, e.typ == runError
	switch {
	case v.phase == phaseFailed && !start:
		return e.malformed(fType, "V2", "the run has ended with RUN_ERROR")
	case v.phase == phaseFinished && !start && !failure:
		return e.malformed(fType, "V3", "the run has ended with RUN_FINISHED")
	case v.phase == phaseNew && !start && !failure:
		return e.malformed(fType, "V1", "a stream begins with RUN_STARTED")
	case v.phase == phaseActive && start:
		return e.malformed(fType, "V4", "the run before it has not ended")
	case e.typ != unknownType && isNull(e.raw(fSubagentRunID)):
		return e.malformed(fSubagentRunID, "V5", "it may be absent but not null")
	}
	return nil
}

// take judges an admitted event by the rule of its type and notes what it does. On error nothing is noted.
func (v *Verifier) take(e *event) error {
	switch e.typ {
	case runStarted:
		return v.start(e)
	case runFinished:
		return v.finish(e)
	case runError:
		v.phase = phaseFailed
		return nil
	case subagentStarted, subagentFinished, subagentError:
		if err := checkSubagent(e); err != nil {
			return err
		}
		return v.run.subagent(e)
	}
	return v.run.take(e)
}

func (v *Verifier) start(e *event) error {
	run := newOpened()
	if err := run.seed(e, "input.messages", member(e.raw(fInput), "messages")); err != nil {
		return err
	}
	v.phase, v.run = phaseActive, run
	return nil
}

func (v *Verifier) finish(e *event) error {
	interrupts := member(e.raw(fOutcome), "interrupts")
	if isArray(interrupts) {
		for w := walk(interrupts); w.next(); {
			if isNull(member(w.value, "subagentRunId")) {
				return e.malformed(fOutcome, "V23", "subagentRunId of an interrupt may be absent but not null")
			}
		}
	}
	if what, names := v.run.leftOpen(); len(names) > 0 {
		return e.malformed(fType, "V20", "%s still open: %s", what, strings.Join(names, ", "))
	}
	v.phase = phaseFinished
	return nil
}

// take judges and notes the events of an active run that are not about subagents.
func (o *opened) take(e *event) error {
	switch e.typ {
	case textStart:
		return o.open(e, textItem)
	case thoughtStart:
		return o.open(e, thoughtItem)
	case spanStart:
		return o.open(e, spanItem)
	case callStart:
		return o.open(e, callItem)
	case textContent, textEnd:
		return o.proceed(e, textItem, "V7")
	case callArgs, callEnd:
		return o.proceed(e, callItem, "V9")
	case thoughtContent, thoughtEnd:
		return o.proceed(e, thoughtItem, "V14")
	case spanEnd:
		return o.proceed(e, spanItem, "V14")
	case callResult:
		return o.result(e)
	case stepStarted:
		return o.startStep(e)
	case stepFinished:
		return o.finishStep(e)
	case encryptedValue:
		return o.encrypted(e)
	case activitySnapshot:
		return o.activity(e)
	case activityDelta:
		return o.agree(e, activityTable, e.text(fMessageID))
	case messagesSnapshot:
		return o.seed(e, "messages", e.raw(fMessages))
	}
	return nil // V24
}

// leftOpen names what is open, of the first kind in the order of V20.
func (o *opened) leftOpen() (string, []string) {
	if len(o.steps) > 0 {
		var names []string
		for _, s := range ordered(o.steps) {
			name := short(s.name)
			if s.owner.set {
				name += " of " + s.owner.String()
			}
			names = append(names, name)
		}
		return "steps are", names
	}
	for _, kind := range []item{textItem, thoughtItem, spanItem, callItem} {
		if len(o.items[kind]) > 0 {
			return itemNames[kind] + "s are", shortened(ordered(o.items[kind]))
		}
	}
	return "subagents are", shortened(ordered(o.agents))
}

func shortened(ids []string) []string {
	for i, id := range ids {
		ids[i] = short(id)
	}
	return ids
}
