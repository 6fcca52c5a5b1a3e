package web

import (
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agui"
	"github.com/threadcast/threadcast/web/copilotkit"
	"github.com/threadcast/threadcast/web/wire"
)

// enough is how many bytes are gathered before they are written.
const enough = 64 << 10

// origin is the run that an event is of.
type origin struct {
	id     thread.RunID
	number uint64
}

// add makes the frame of an event, after which the client stands at a place.
func (m *pipe) add(event []byte, of origin, at copilotkit.Position) error {
	if m.Kind == ticketRun && of.id != m.RunID || !m.event.Read(event) {
		m.place = at
		return nil
	}
	if m.event.Stopped() {
		m.event.Read(agui.RunCancelled(string(m.Thread), string(of.id)))
	}
	stamp := copilotkit.Stamp{Position: at, ThreadID: m.Thread, RunID: of.id, Old: m.old(of.number)}
	if m.event.Is("RUN_ERROR") && !stamp.Old {
		if err := m.hush(); err != nil {
			return err
		}
	}
	m.place, m.running = at, !m.event.Terminal()
	m.out.begin()
	m.out.bytes = wire.AppendPushHead(m.out.bytes, m.joinRef, m.topic, copilotkit.PushEvent)
	m.out.bytes = append(m.event.Append(m.out.bytes, stamp), ']')
	m.out.seal()
	m.count++
	if !m.running && m.Kind == ticketRun {
		if err := m.flush(); err != nil {
			return err
		}
		m.finish()
		return errServed
	}
	if len(m.out.bytes) >= enough {
		return m.flush()
	}
	return nil
}

// old tells whether the failure of a run is no news to the client: the run had ended when it connected, and the client was
// not in the middle of it. Who opens a page shall not see alarms of long ago.
func (m *pipe) old(run uint64) bool {
	return m.Kind == ticketConnect && run <= m.facts.ended && run != m.start.Run
}

// hush waits before a RUN_ERROR until what went before has arrived, and the client has dealt with it: what it has not when the
// error comes, it throws away.
func (m *pipe) hush() error {
	if err := m.flush(); err != nil {
		return err
	}
	late := time.NewTimer(pauseMost)
	defer late.Stop()
	select {
	case <-m.landed():
	case <-late.C:
	case <-m.ctx.Done():
		return errReplaced
	}
	if !m.await(m.pace.pause(time.Now())) {
		return errReplaced
	}
	return nil
}

// flush writes what was made.
func (m *pipe) flush() error {
	if len(m.out.bytes) == 0 {
		return nil
	}
	f := m.out
	m.out = newFrames()
	m.pace.sent(time.Now(), m.count)
	m.count = 0
	m.writing.Lock()
	defer m.writing.Unlock()
	if m.ctx.Err() != nil || !m.sending(m.ss, m.place) {
		f.release()
		return errReplaced
	}
	if payload := m.ss.pulse.writing(m.place); payload != nil {
		f.ping(payload)
	}
	if !m.ss.write(f) {
		return errReplaced
	}
	m.ss.pulse.wrote()
	return nil
}

// A client takes half a millisecond for an event, more or less.
const (
	pauseLeast = 50 * time.Millisecond
	pauseEach  = 500 * time.Microsecond
	pauseMost  = time.Second
)

// pace is how much a client has to deal with: what was sent to it, less what it has had the time for.
type pace struct {
	until time.Time // when it will be done
}

// sent notes that so many events have been sent.
func (p *pace) sent(now time.Time, events int) {
	if p.until.Before(now) {
		p.until = now
	}
	p.until = p.until.Add(time.Duration(events) * pauseEach)
}

// pause is how long to wait before what the client should not see too early.
func (p *pace) pause(now time.Time) time.Duration {
	return min(pauseLeast+max(0, p.until.Sub(now)), pauseMost)
}
