package agui

import "slices"

// Rules R7 to R9: activities, and messages as a whole.

// activity is R7.
func (r *Reducer) activity(e *event) {
	keep := string(e.raw(fReplace)) == "false"
	i := slices.IndexFunc(r.messages, func(h *held) bool { return h.id == string(e.text(fMessageID)) })
	if i < 0 {
		r.messages = append(r.messages, newActivity(e))
		return
	}
	h := r.messages[i]
	switch {
	case h.role != "activity" && !keep:
		r.messages[i] = newActivity(e)
	case h.role == "activity" && !keep:
		r.messages[i] = newActivity(e)
		if old := h.body.get("metadata"); old != nil {
			r.messages[i].body.set("metadata", old)
			r.messages[i].merge(e)
		}
	default:
		h.merge(e)
	}
}

func newActivity(e *event) *held {
	h := create(e, fMessageID, "activity")
	for _, f := range []field{fActivityType, fContent} {
		if raw := e.raw(f); raw != nil {
			h.body.set(fieldNames[f], newNode(raw))
		}
	}
	h.merge(e)
	return h
}

// patchActivity is R8.
func (r *Reducer) patchActivity(e *event) {
	h := r.find(e.text(fMessageID))
	if h == nil || h.role != "activity" {
		return
	}
	content := h.body.get("content")
	if content == nil {
		content = newNode([]byte("{}"))
	}
	doc := document{root: content}
	if ops, ok := parsePatch(e.raw(fPatch)); ok && doc.patch(ops) == nil {
		h.body.set("content", doc.root)
		if kind := e.raw(fActivityType); kind != nil {
			h.body.set("activityType", newNode(kind))
		}
	}
	h.merge(e)
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
	for _, h := range r.messages {
		if g := given[h.id]; g != nil {
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
	r.messages = next
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
