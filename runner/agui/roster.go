package agui

// roster is the messages that a Reducer holds, in order, so that what an event names is found without looking through
// the others. Ids need not be unique: of two, the first in order is the one that is found.
type roster struct {
	first, last *held
	byID        map[string]*held // the first of each id
	calls       map[string]call  // the first of each tool call's id
	cuts        int              // how often a run of tool messages may have been parted; see held.tail
}

// held is a message that a Reducer holds.
type held struct {
	id, role string
	known    bool  // the role is one of AG-UI 1.0
	body     *node // the whole message
	size     int   // what the message counts for

	prev, next *held
	// tail is a message of the run of tool messages behind this one, from which its end is not far, as long as cuts is
	// that of the roster.
	tail *held
	cuts int
}

// calls yields the ids of the message's tool calls, in order.
func (h *held) calls(yield func(string) bool) {
	list := h.body
	if list.raw == nil {
		if list = list.get("toolCalls"); list == nil {
			return
		}
	} else {
		list = newNode(member(list.raw, "toolCalls"))
	}
	if list.raw == nil {
		for _, p := range list.parts {
			if list.list && !yield(p.value.textOf("id")) {
				return
			}
		}
		return
	}
	if !isArray(list.raw) {
		return
	}
	for w := walk(list.raw); w.next(); {
		if !yield(text(member(w.value, "id"))) {
			return
		}
	}
}

// call is where a tool call stands: its message, and its place among the calls of that.
type call struct {
	holder *held
	at     int
}

// node is the tool call itself.
func (c call) node() *node {
	calls := c.holder.body.get("toolCalls")
	calls.open()
	return calls.parts[c.at].value
}

func newRoster() roster { return roster{byID: map[string]*held{}, calls: map[string]call{}} }

func (l *roster) find(id []byte) *held { return l.byID[string(id)] }

// append puts a message behind all others.
func (l *roster) append(h *held) {
	h.prev, h.next = l.last, nil
	if l.last == nil {
		l.first = h
	} else {
		l.last.next = h
	}
	l.last = h
	if l.byID[h.id] == nil {
		l.byID[h.id] = h
	}
	l.indexCalls(h)
}

func (l *roster) indexCalls(h *held) {
	at := 0
	for id := range h.calls {
		l.indexCall(id, call{h, at})
		at++
	}
}

func (l *roster) indexCall(id string, c call) {
	if _, found := l.calls[id]; !found {
		l.calls[id] = c
	}
}

// appendResult puts a tool message behind the tool messages that follow the holder of its call (R3).
func (l *roster) appendResult(h, holder *held) {
	at := holder
	if holder.tail != nil && holder.cuts == l.cuts {
		at = holder.tail
	}
	for at.next != nil && at.next.role == "tool" {
		at = at.next
	}
	holder.tail, holder.cuts = h, l.cuts
	if at.next == nil {
		l.append(h)
		return
	}
	h.prev, h.next = at, at.next
	at.next, at.next.prev = h, h
	if l.byID[h.id] != nil {
		l.byID[h.id] = l.scan(h.id)
		return
	}
	l.byID[h.id] = h
}

// scan looks for the first message of an id.
func (l *roster) scan(id string) *held {
	for h := l.first; h != nil; h = h.next {
		if h.id == id {
			return h
		}
	}
	return nil
}

// replace puts a message in the place of another of the same id, which was found by that.
func (l *roster) replace(old, h *held) {
	h.prev, h.next = old.prev, old.next
	if h.prev == nil {
		l.first = h
	} else {
		h.prev.next = h
	}
	if h.next == nil {
		l.last = h
	} else {
		h.next.prev = h
	}
	l.byID[h.id] = h
	if old.role == "tool" {
		l.cuts++
	}
	if old.body.get("toolCalls") != nil {
		clear(l.calls)
		for m := l.first; m != nil; m = m.next {
			l.indexCalls(m)
		}
	}
}

// reset makes the roster one of these messages.
func (l *roster) reset(messages []*held) {
	cuts := l.cuts + 1
	*l = newRoster()
	l.cuts = cuts
	for _, h := range messages {
		l.append(h)
	}
}
