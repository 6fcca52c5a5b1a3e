package agui

// Rules R7 to R9: activities, and messages as a whole.

// activity is R7.
func (r *Reducer) activity(e *event) {
	old := r.messages.find(e.text(fMessageID))
	if old != nil && string(e.raw(fReplace)) == "false" {
		r.merge(old, e)
		return
	}
	h := newActivity(e)
	if old == nil {
		if r.add(h) {
			r.merge(h, e)
		}
		return
	}
	if kept := old.body.get("metadata"); kept != nil && old.role == "activity" {
		h.body.set("metadata", kept)
	}
	h.size = heldBytes + h.body.bulk()
	if r.budget.spend(h.size - old.size) {
		r.messages.replace(old, h)
		r.merge(h, e)
	}
}

func newActivity(e *event) *held {
	h := create(e, fMessageID, "activity")
	for _, f := range []field{fActivityType, fContent} {
		if raw := e.raw(f); raw != nil {
			h.body.set(fieldNames[f], newNode(own(raw)))
		}
	}
	return h
}

// patchActivity is R8.
func (r *Reducer) patchActivity(e *event) {
	h := r.messages.find(e.text(fMessageID))
	if h == nil || h.role != "activity" {
		return
	}
	content := h.body.get("content")
	if content == nil {
		content = newNode([]byte("{}"))
	}
	doc := document{root: content}
	if grown, ok := r.budget.patch(&doc, e.raw(fPatch)); ok {
		h.size += grown
		h.body.set("content", doc.root)
		if kind := e.raw(fActivityType); kind != nil {
			r.set(h, h.body, "activityType", kind)
		}
	}
	r.merge(h, e)
}

// restate is R9.
func (r *Reducer) restate(e *event) {
	given := map[string]*held{}
	var order []*held
	has := map[string]bool{} // roles
	for w := walk(e.raw(fMessages)); w.next(); {
		h := hold(w.value)
		if h.known {
			given[h.id], has[h.role] = h, true
			order = append(order, h)
		}
	}
	stays := outlives(e, has)
	var next []*held
	placed := map[string]bool{}
	for h := r.messages.first; h != nil; h = h.next {
		if g := given[h.id]; g != nil {
			if placed[h.id] {
				g = g.twin()
			}
			next = append(next, g)
			placed[h.id] = true
		} else if stays(h) {
			next = append(next, h)
		}
	}
	for _, h := range order {
		if !placed[h.id] {
			next = append(next, h)
		}
	}
	r.replaceAll(next)
}

// twin is a message like h, for another place. What changes one later does not change the other, so that each counts for
// itself.
func (h *held) twin() *held {
	return &held{id: h.id, role: h.role, known: h.known, body: h.body.clone(), size: h.size}
}

// replaceAll takes other messages instead of those held, if there is room for them.
func (r *Reducer) replaceAll(messages []*held) {
	size := 0
	for h := r.messages.first; h != nil; h = h.next {
		size -= h.size
	}
	for _, h := range messages {
		size += h.size
	}
	if r.budget.spend(size) {
		r.messages.reset(messages)
	}
}

// outlives tells which messages stay though a snapshot does not have them: activities if it has none, and reasoning
// if it has none; or activities of the types that it does not declare to be complete.
func outlives(e *event, has map[string]bool) func(*held) bool {
	all, types := !has["activity"], map[string]bool(nil)
	if declared := member(member(e.raw(fMetadata), "@ag-ui/client"), "authoritativeActivityTypes"); declared != nil {
		all, types = declaredTypes(declared)
	}
	return func(h *held) bool {
		switch h.role {
		case "activity":
			return all || types != nil && !types[h.body.textOf("activityType")]
		case "reasoning":
			return !has["reasoning"]
		}
		return false
	}
}

// declaredTypes reads authoritativeActivityTypes: null declares the snapshot complete for all types, a list for those
// in it, and anything else for none, in which case all activities stay.
func declaredTypes(raw []byte) (all bool, types map[string]bool) {
	if isNull(raw) {
		return false, nil
	}
	if !isArray(raw) {
		return true, nil
	}
	types = map[string]bool{}
	for w := walk(raw); w.next(); {
		if !isString(w.value) {
			return true, nil
		}
		types[text(w.value)] = true
	}
	return false, types
}
