package web

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/web/wire"
)

// stopReplyTime is how long a client waits at most for the answer to stop_run, in which the last events of the run should
// have come. It gives up after 5 s.
const stopReplyTime = 3 * time.Second

// handle answers a push. A stop is carried out even if the socket is gone by now, or was before the join was served.
func (m *pipe) handle(f wire.Frame) {
	if f.Event != "stop_run" {
		m.ss.refuse(f, fmt.Errorf("%w: %q; this topic takes stop_run", errUnknownEvent, f.Event))
		return
	}
	run, err := parseStop(f.Payload)
	if err != nil {
		m.ss.refuse(f, err)
		return
	}
	if run == "" {
		run = m.RunID
	}
	if m.Kind == ticketRun && run != m.RunID {
		m.ss.reply(f, "ok", []byte(`{"stopped":false}`))
		return
	}
	m.stop(f, run)
}

// stop stops the run, and answers when its last events have been sent, or after a while.
func (m *pipe) stop(f wire.Frame, run thread.RunID) {
	type answer struct {
		thread.Stopped
		err error
	}
	done := make(chan answer, 1)
	m.ss.busy.Go(func() {
		ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(m.ss.ctx), stopTimeout, thread.ErrUnavailable)
		defer cancel()
		st, err := m.ss.srv.Runs.Stop(ctx, m.Thread, run, m.ss.caller.name())
		done <- answer{st, err}
	})
	late := time.NewTimer(stopReplyTime)
	defer late.Stop()
	var a answer
	select {
	case a = <-done:
	case <-late.C: // it is under way
	}
	if a.err != nil {
		m.ss.refuse(f, a.err)
		return
	}
	if a.Stopped.Stopped {
		select {
		case <-m.tape.at(a.Cursor):
		case <-m.ctx.Done():
		case <-late.C:
		}
	}
	text, err := json.Marshal(stopReply{Stopped: a.Stopped.Stopped, RunID: a.RunID})
	if err != nil {
		m.ss.refuse(f, err)
		return
	}
	m.ss.reply(f, "ok", text)
}

// trace is how far a pump has come, for those who wait for it.
type trace struct {
	mu      sync.Mutex
	cursor  thread.Cursor
	waiting map[chan struct{}]thread.Cursor
}

// to notes that the pump has sent everything up to a cursor.
func (t *trace) to(c thread.Cursor) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cursor = c
	for ch, until := range t.waiting {
		if !c.Before(until) {
			close(ch)
			delete(t.waiting, ch)
		}
	}
}

// now is up to where the pump has sent everything.
func (t *trace) now() thread.Cursor {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cursor
}

// at is closed once the pump has sent everything up to a cursor.
func (t *trace) at(until thread.Cursor) <-chan struct{} {
	ch := make(chan struct{})
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.cursor.Before(until) {
		close(ch)
		return ch
	}
	if t.waiting == nil {
		t.waiting = map[chan struct{}]thread.Cursor{}
	}
	t.waiting[ch] = until
	return ch
}
