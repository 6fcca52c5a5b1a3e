package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/threadcast/threadcast/hub"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agui"
	"github.com/threadcast/threadcast/web/copilotkit"
	"github.com/threadcast/threadcast/web/wire"
)

// errLost ends a subscription that cannot go on exactly from where the client is.
var errLost = errors.New("what the client has cannot be gone on from")

// pipe is a membership of a client of CopilotKit in the topic of a thread: in run mode it takes one run from its first event,
// in connect mode what there is after a position, and then what comes until nothing runs. Its pump moves events from
// the hub to the socket.
type pipe struct {
	*channel
	*pipeline

	tape trace

	// For the pump alone.
	facts    facts
	place    copilotkit.Position // where the client stands
	event    copilotkit.Event
	out      *frames       // what has been made and not written,
	count    int           // how many events that is,
	pace     pace          // and how many went before
	caughtUp bool          // replay_complete was sent
	running  bool          // the last event that was taken does not end its run
	recheck  time.Duration // when to look again whether nothing runs; 0 for not before the next batch
}

// join answers the join and begins. What keeps it from going on then is told later, for a client that is refused at its first
// join gives up.
func (m *pipe) join(f wire.Frame) {
	first, err := m.first(f)
	if err != nil {
		m.drop(f, err)
		return
	}
	at, ok := m.begin(m, first)
	if !ok {
		return // another socket has come in the place of this one, or the client has left
	}
	m.place, m.out = at, newFrames()
	if m.send(newFrames().reply(f, "ok", []byte("{}"))) {
		m.ss.busy.Go(m.pump)
	}
}

// first reads where a join says that the client stands.
func (m *pipe) first(f wire.Frame) (copilotkit.Position, error) {
	j, err := copilotkit.ParseJoin(f.Payload)
	switch {
	case err != nil:
		return copilotkit.Position{}, err
	case j.Mode != m.Kind:
		return copilotkit.Position{}, badInput("the join_token of this socket is for stream_mode " + m.Kind)
	case j.RunID != "" && m.Kind == ticketRun && thread.RunID(j.RunID) != m.RunID:
		return copilotkit.Position{}, badInput("the join_token of this socket is for another run")
	case j.Mode == ticketRun || j.LastSeen == "":
		return copilotkit.Position{}, nil
	}
	at, err := copilotkit.ParsePosition(j.LastSeen)
	if err != nil {
		at.Lost = 1 // it is another server's, or a mistake: the client is told how things stand
	}
	return at, nil
}

// left makes the client begin again where it was, if it joins again.
func (m *pipe) left() { m.leave(m) }

// pump serves the membership until the client has what it came for, or it or the socket ends.
func (m *pipe) pump() {
	defer m.cancel()
	defer func() { m.out.release() }()
	err := m.prepare()
	for err == nil {
		if err = m.follow(); errors.Is(err, errLost) {
			err = m.restate()
		}
	}
	m.end(err)
}

// errServed ends a pump whose client has all it came for, and errReplaced one whose client is elsewhere.
var (
	errServed   = errors.New("the client has all it came for")
	errReplaced = errors.New("the membership has ended")
)

// prepare finds out, once for all joins, where the run of the client begins, or what was over when it connected.
func (m *pipe) prepare() error {
	if m.facts = m.recall(); !m.facts.known {
		ctx, cancel := look(m.ctx)
		defer cancel()
		find := m.findEnded
		if m.Kind == ticketRun {
			find = m.findRun
		}
		if err := find(ctx); err != nil {
			return err
		}
	}
	if m.place == (copilotkit.Position{}) {
		m.place.Run = m.facts.run
	}
	return nil
}

// findEnded notes which runs had ended when the client connected.
func (m *pipe) findEnded(ctx context.Context) error {
	t, err := m.ss.srv.Directory.Thread(ctx, m.Thread)
	if err != nil && !errors.Is(err, thread.ErrNotFound) {
		return fmt.Errorf("look up thread %s: %w", m.Thread, err)
	}
	m.facts = facts{known: true, ended: t.LastRun}
	if t.Latest != nil && t.Latest.Ended.IsZero() {
		// It may have ended a moment before the history knows.
		st, err := m.ss.srv.Runs.Status(ctx, m.Thread)
		if err != nil || st.Latest == nil || st.Latest.Number < t.Latest.Number {
			m.facts.ended = t.Latest.Number - 1
		}
	}
	m.learn(m.facts)
	return nil
}

// findRun notes the number of the client's run. One that waits for its turn has none yet: it comes after all there is.
func (m *pipe) findRun(ctx context.Context) error {
	for range 2 { // it may begin in between
		run, err := m.ss.srv.Directory.FindRun(ctx, m.Thread, m.RunID)
		if err == nil {
			m.facts = facts{known: true, run: run.Number}
			m.learn(m.facts)
			return nil
		}
		if !errors.Is(err, thread.ErrNotFound) {
			return fmt.Errorf("find run %s: %w", m.RunID, err)
		}
		st, err := m.ss.srv.Runs.Status(ctx, m.Thread)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(st.Queue, func(q thread.Queued) bool { return q.RunID == m.RunID }) {
			m.place.Cursor = st.Cursor
			return nil
		}
	}
	return fmt.Errorf("%w: run %q is not known here", thread.ErrNotFound, m.RunID)
}

// follow sends what comes after the client's place, one subscription long.
func (m *pipe) follow() error {
	if m.place.Lost > 0 {
		return errLost
	}
	if m.place.Plus > 0 {
		if err := m.rest(); err != nil {
			return err
		}
	}
	ctx, cancel := look(m.ctx)
	sub, err := m.ss.srv.Hub.Subscribe(ctx, m.Thread, hub.Options{
		After: m.place.Cursor, Replay: hub.Stored, Discarded: m.Kind == ticketRun,
	})
	cancel()
	if errors.Is(err, thread.ErrBadCursor) {
		return m.lose()
	}
	if err != nil {
		return err
	}
	defer sub.Close()
	m.running, m.recheck = false, 0 // as far as is known
	m.tape.to(sub.Start())
	for {
		b, err := m.next(sub)
		if err != nil {
			return err
		}
		if err := m.take(b); err != nil {
			return err
		}
	}
}

// next waits for the next batch. While something keeps the client from being told that nothing runs, although nothing does,
// it is looked after that now and then: no event may come of it.
func (m *pipe) next(sub *hub.Subscription) (hub.Batch, error) {
	for m.recheck > 0 {
		ctx, cancel := context.WithTimeout(m.ctx, m.recheck)
		b, err := sub.Next(ctx)
		late := ctx.Err() != nil && m.ctx.Err() == nil
		cancel()
		if err == nil || !late {
			return b, err
		}
		if err := m.rests(m.tape.now()); err != nil {
			return b, err
		}
	}
	return sub.Next(m.ctx)
}

// lose notes that the client cannot go on from where it is.
func (m *pipe) lose() error {
	m.place.Plus, m.place.Lost = 0, 1
	return errLost
}

// take deals with a batch.
func (m *pipe) take(b hub.Batch) error {
	switch b.Kind {
	case hub.Reset:
		return m.reset(b.RunID)
	case hub.Events:
		for i, event := range b.Events {
			at := copilotkit.Position{Cursor: b.From, Plus: i + 1}
			if c, ok := b.After(i); ok {
				at = copilotkit.Position{Cursor: c}
			}
			if err := m.add(event, origin{b.RunID, b.To.Run}, at); err != nil {
				return err
			}
		}
		if err := m.flush(); err != nil {
			return err
		}
	case hub.CaughtUp:
		if err := m.control(copilotkit.PushReplayComplete); err != nil {
			return err
		}
		m.caughtUp = true
	case hub.Changed:
	}
	m.tape.to(b.To)
	m.recheck = 0
	if m.Kind == ticketConnect && m.caughtUp && !m.running {
		return m.rests(b.To)
	}
	return nil
}

// reset deals with what became of a run of which the client has a part. While it goes on, the live log has lost some of it
// and will be given that again; or else it is there in another form only, or was replaced.
func (m *pipe) reset(run thread.RunID) error {
	ctx, cancel := look(m.ctx)
	defer cancel()
	st, err := m.ss.srv.Runs.Status(ctx, m.Thread)
	if err != nil {
		return err
	}
	if st.Running && run != "" && st.RunID == run && m.moved(m.place) {
		return fmt.Errorf("the live log has not got all of run %s: %w", run, thread.ErrUnavailable)
	}
	return m.lose()
}

// rest sends what comes after the client's place in a run of which it has a part in the form that history keeps.
func (m *pipe) rest() error {
	ctx, cancel := look(m.ctx)
	defer cancel()
	run, err := m.ss.srv.Hub.Finished(ctx, m.Thread, m.place.Run)
	if errors.Is(err, thread.ErrNotFound) {
		return m.lose()
	}
	if err != nil {
		return err
	}
	events, ok := hub.Rest(run.Events, m.place.Seq)
	if !ok || len(events) < m.place.Plus {
		return m.lose()
	}
	at, taken := m.place, m.place.Plus // m.place moves with what is sent
	for i, event := range events[taken:] {
		at.Plus++
		if i == len(events)-taken-1 {
			at = copilotkit.Position{Cursor: run.Cursor()}
		}
		if err := m.add(event.Data, origin{run.ID, run.Number}, at); err != nil {
			return err
		}
	}
	m.place = copilotkit.Position{Cursor: run.Cursor()}
	return m.flush()
}

// How soon it is looked again whether nothing runs, from one time to the next.
const (
	recheckFirst   = 50 * time.Millisecond
	recheckRunning = time.Second // of a run that has said nothing yet
	recheckMost    = 10 * time.Second
)

// rests tells the client that nothing runs, if that is so and it has everything up to there.
func (m *pipe) rests(at thread.Cursor) error {
	ctx, cancel := look(m.ctx)
	defer cancel()
	st, err := m.ss.srv.Runs.Status(ctx, m.Thread)
	if err != nil {
		return err
	}
	// Of a run whose owner is gone there is no end yet, and somebody will write it.
	unfinished := st.RunID != "" && st.Latest == nil && st.Cursor.Seq == 0
	if !st.Running && !unfinished && len(st.Queue) == 0 && !at.Before(st.Cursor) {
		return m.idle()
	}
	first := recheckFirst
	if st.Running {
		first = recheckRunning
	}
	m.recheck = min(max(first, 2*m.recheck), recheckMost)
	return nil
}

// idle tells the client that nothing more comes. Nothing does: a run that begins now is one that it has to hear of otherwise.
func (m *pipe) idle() error {
	if err := m.control(copilotkit.PushStreamIdle); err != nil {
		return err
	}
	m.finish()
	return errServed
}

// control sends a frame beside the events, in connect mode.
func (m *pipe) control(event string) error {
	if m.Kind != ticketConnect {
		return nil
	}
	m.out.push(m.channel, event, copilotkit.AppendControl(nil, m.place))
	return m.flush()
}

// end tells the client why nothing more follows.
func (m *pipe) end(err error) {
	if m.ctx.Err() != nil || errors.Is(err, errServed) || errors.Is(err, errReplaced) {
		return
	}
	p := problem(err)
	switch {
	case errors.Is(err, thread.ErrDeleted):
		p.Message = "The thread was deleted."
	case !errors.Is(err, thread.ErrDraining):
		m.ss.srv.report(p, "subscription", fmt.Errorf("thread %s: %w", m.Thread, err))
	}
	if p.status != http.StatusServiceUnavailable && !errors.Is(err, errBusy) {
		m.conclude(p)
		return
	}
	// The client joins again in a moment, and goes on behind what was sent.
	m.ss.forget(m.channel)
	m.send(newFrames().push(m.channel, wire.EventError, []byte("{}")))
}

// conclude ends what cannot be served: a run fails, and a connect is over. Its client tries again when it connects next time,
// from where it is.
func (m *pipe) conclude(p Problem) {
	switch {
	case m.Kind == ticketRun:
		_ = m.add(agui.RunError(p.Message, p.Code), origin{id: m.RunID}, m.place)
	case p.status != http.StatusGone:
		_ = m.control(copilotkit.PushReplayFailed)
		fallthrough
	default:
		_ = m.control(copilotkit.PushReplayComplete)
		_ = m.control(copilotkit.PushStreamIdle)
	}
	m.finish()
}

// await waits, and tells whether the membership goes on.
func (m *pipe) await(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-m.ctx.Done():
		return false
	}
}
