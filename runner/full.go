package runner

// recede takes back the last n entries, for which the log has no room, and ends the run with what is in the log. What
// the agent said after that is not recorded: nobody saw it.
func (e *execution) recede(n int, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.entries = e.entries[:len(e.entries)-n]
	e.tracker, _ = replay(e.run, e.entries)
	e.queue.clear()
	if e.over != nil && !e.over.own {
		e.changed.Broadcast()
		return // somebody has said how it ends
	}
	full := failure("log_full", "The server had no room for more of what the agent said.", err)
	e.over = &full
	e.cancel(full.cause)
	e.changed.Broadcast()
}
