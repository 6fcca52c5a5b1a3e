package agui

import (
	"cmp"
	"maps"
	"slices"
)

// ordered returns the keys of what is open, in the order of opening.
func ordered[K comparable](open map[K]mark) []K {
	return slices.SortedFunc(maps.Keys(open), func(a, b K) int { return cmp.Compare(open[a].order, open[b].order) })
}

// closers writes the events that close everything but what chunks hold open, AG-UI 1.0, section 8: text and
// reasoning messages, tool calls, reasoning spans, steps, subagents innermost first. They omit the opener's
// subagentRunId, which always agrees with the owner, except where it is part of the name.
func (o *opened) closers() [][]byte {
	var events [][]byte
	for _, it := range o.explicit(textItem, thoughtItem) {
		events = append(events, it.end())
	}
	for _, kind := range []item{callItem, spanItem} {
		for _, it := range o.explicit(kind) {
			events = append(events, it.end())
		}
	}
	for _, s := range ordered(o.steps) {
		b := newBuilder("STEP_FINISHED").str("stepName", s.name)
		if s.owner.set {
			b = b.str("subagentRunId", s.owner.id)
		}
		events = append(events, b.bytes())
	}
	agents := ordered(o.agents)
	slices.Reverse(agents) // a subagent starts after its parent
	for _, id := range agents {
		events = append(events, newBuilder("SUBAGENT_ERROR").str("subagentRunId", id).
			str("message", "The run ended before this subagent did.").str("code", "cancelled").bytes())
	}
	return events
}

// openItem names an item that START opened.
type openItem struct {
	kind  item
	id    string
	order int
}

func (it openItem) end() []byte {
	s := shapes[it.kind]
	return newBuilder(typeNames[s.end]).str(fieldNames[s.id], it.id).bytes()
}

// explicit lists the open items of some kinds that no chunks hold, in the order of opening.
func (o *opened) explicit(kinds ...item) []openItem {
	var list []openItem
	for _, kind := range kinds {
		for id, m := range o.items[kind] {
			if !m.chunk {
				list = append(list, openItem{kind, id, m.order})
			}
		}
	}
	slices.SortFunc(list, func(a, b openItem) int { return cmp.Compare(a.order, b.order) })
	return list
}
