package redislog

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// How lanes are probed.
const (
	probeEvery = time.Second
	echoWithin = 3 * time.Second // a lane whose probes take longer is dialled again
	redWithin  = 5 * time.Second // a log whose probes take longer is not healthy
)

// prober writes to all lanes again and again, sees whether that comes back, and wakes lanes.
type prober struct {
	log    *Log
	number uint64
	dialed time.Time
	wakes  chan int // groups whose lanes are to be woken

	mu   sync.Mutex
	sent map[uint64]time.Time // when each probe was written that may still come back
	err  error                // of the last writing
}

func newProber(l *Log) *prober {
	return &prober{log: l, wakes: make(chan int, Groups), sent: make(map[uint64]time.Time)}
}

// probeCall writes a probe to a lane, or wakes it if number is 0.
func (s *server) probeCall(group int, number uint64) call {
	return call{
		script: s.scripts.probe,
		keys:   []string{s.keys.probe(group, s.node), s.keys.counters(group)},
		args:   []any{number},
	}
}

// readProbe reads the reply to a probe: where the news are.
func readProbe(list []any) position {
	f := fields(list)
	return readPosition(f[0] + "-" + f[1])
}

func (p *prober) run() {
	var told time.Time
	for p.log.pause(probeEvery) {
		before := p.positions()
		news, err := p.write()
		if err == nil {
			err = p.log.claimAgain()
		}
		p.mu.Lock()
		p.err = err
		p.mu.Unlock()
		if errors.Is(err, ErrForeign) && time.Since(told) > time.Minute {
			told = time.Now()
			p.log.opts.Logger.Error("two databases share one Redis: stop the nodes of one of them", "err", err)
		}
		if err != nil {
			continue
		}
		lost := false
		for g, ln := range p.log.lanes {
			// Behind where the lane has been: data were lost.
			if news[g].before(before[g]) || news[g].first != before[g].first {
				lost = lost || before[g] != position{}
				ln.doubt()
				ln.wake()
			}
		}
		if lost && time.Since(told) > time.Minute {
			told = time.Now()
			p.log.opts.Logger.Warn("Redis has lost data; what the runs of this node wrote is written again")
		}
		p.heal()
	}
}

// positions returns where each lane is in the news.
func (p *prober) positions() (at [Groups]position) {
	for g, ln := range p.log.lanes {
		ln.mu.Lock()
		at[g] = ln.news
		ln.mu.Unlock()
	}
	return at
}

// write writes a probe to each lane, and returns where the news are.
func (p *prober) write() (news [Groups]position, err error) {
	p.number++
	now := time.Now()
	p.mu.Lock()
	p.sent[p.number] = now
	for n, at := range p.sent {
		if now.Sub(at) > time.Minute {
			delete(p.sent, n)
		}
	}
	p.mu.Unlock()
	calls := make([]call, Groups)
	for g := range calls {
		calls[g] = p.log.probeCall(g, p.number)
	}
	replies, err := p.log.runAll(context.Background(), p.log.runs, calls)
	if err != nil {
		return news, err
	}
	for g, r := range replies {
		if r.err != nil {
			return news, fmt.Errorf("probe group %d: %w", g, r.err)
		}
		news[g] = readProbe(r.list)
	}
	return news, nil
}

// heal dials the lanes again if what is written does not come back by one of them: their connections may be to a server
// that nobody writes to any more.
func (p *prober) heal() {
	late := -1
	for g, ln := range p.log.lanes {
		if time.Since(ln.echoAt()) > echoWithin {
			late = g
		}
	}
	if late < 0 || time.Since(p.dialed) < echoWithin {
		return
	}
	p.dialed = time.Now()
	p.log.opts.Logger.Warn("what is written to Redis does not come back; its readers are connected again", "group", late)
	fresh := p.log.client(Groups + 2)
	old := p.log.reads.Swap(&fresh)
	_ = ignoreClosed((*old).Close()) // the lanes see it
	if p.log.closing() {
		_ = ignoreClosed(fresh.Close())
	}
}

// sentAt tells when a probe was written.
func (p *prober) sentAt(number uint64) (time.Time, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.sent[number]
	return at, ok
}

// wakeAll wakes the lanes that ask for it.
func (p *prober) wakeAll() {
	for {
		select {
		case <-p.log.stop:
			return
		case g := <-p.wakes:
			p.log.lanes[g].waking.Store(false)
			// If it cannot be woken, it wakes by itself after a while.
			_, _ = p.log.run(context.Background(), p.log.probeCall(g, 0))
		}
	}
}

// wake makes the lane look at what it should read.
func (ln *lane) wake() {
	if !ln.waking.Swap(true) {
		ln.log.prober.wakes <- ln.group // there is room for every lane
	}
}

// echoed notes the probes that came.
func (ln *lane) echoed(list []any) {
	for _, one := range list {
		id, _, value, ok := readRaw(one)
		if !ok {
			continue
		}
		ln.probed = id
		number, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			continue
		}
		if at, ok := ln.log.prober.sentAt(number); ok && ln.echo.Before(at) {
			ln.echo = at
		}
	}
}

func (ln *lane) echoAt() time.Time {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	return ln.echo
}

// Healthy tells whether what is appended anywhere reaches the tails of this node. It is an error that wraps
// [thread.ErrUnavailable], or [thread.ErrFull], when probes, which go the same way as events, cannot be written, or have
// not come back for 5 seconds.
func (l *Log) Healthy(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if l.closing() {
		return errClosed
	}
	l.prober.mu.Lock()
	err := l.prober.err
	l.prober.mu.Unlock()
	if err != nil {
		return fmt.Errorf("write to Redis: %w", err)
	}
	for g, ln := range l.lanes {
		if late := time.Since(ln.echoAt()); late > redWithin {
			return fmt.Errorf("%w: what was written to Redis for group %d has not come back for %v",
				thread.ErrUnavailable, g, late.Round(time.Second))
		}
	}
	return nil
}
