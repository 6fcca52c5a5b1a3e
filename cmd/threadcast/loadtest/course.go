package loadtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/threadcast/threadcast/cmd/threadcast/client"
	"github.com/threadcast/threadcast/persistence/thread"
)

// course is the life of one thread: its viewers come, its runs follow each other, and what they saw is compared.
type course struct {
	*load
	thread  string
	viewers []*viewer
	here    chan struct{} // a value for every viewer who has joined
	done    chan saw
	given   chan error   // why it cannot go on
	last    atomic.Int64 // when something came, in nanoseconds since the load began
	asked   atomic.Int64 // when the present run was asked for
	stopAt  atomic.Pointer[stopping]
}

// saw is what a viewer has of a run that ended.
type saw struct {
	viewer int
	run    *passage
}

// stopping is the wish to stop a run when it has come so far.
type stopping struct {
	seq  uint64
	now  chan struct{}
	once sync.Once
}

func newCourse(l *load, n int) *course {
	c := &course{
		load: l, thread: fmt.Sprintf("%s%d", l.Prefix, n), here: make(chan struct{}, l.Viewers),
		done: make(chan saw, 2*l.Viewers), given: make(chan error, l.Viewers),
	}
	for i := range l.Viewers {
		v := &viewer{c: c, index: i, url: l.nodes.URL(n + i), restless: rand.IntN(100) < l.Restless}
		c.viewers = append(c.viewers, v)
	}
	return c
}

// run is all of it. It waits with its first run until start is closed.
func (c *course) run(ctx context.Context, joined func(), start <-chan struct{}) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	c.moved()
	for _, v := range c.viewers {
		all.Go(func() { v.follow(ctx) })
	}
	err := c.gather(ctx)
	joined()
	if err != nil {
		c.say(ctx, "its viewers have not come: %v", err)
		return
	}
	select {
	case <-start:
	case <-ctx.Done():
		return
	}
	for n := range c.Runs {
		if !c.round(ctx, fmt.Sprintf("run-%d", n+1)) {
			return
		}
	}
}

// gather waits until all viewers have joined.
func (c *course) gather(ctx context.Context) error {
	for range c.viewers {
		if err := receive(ctx, c, c.here, func(struct{}) {}); err != nil {
			return err
		}
	}
	return nil
}

// receive waits for a value for as long as something comes now and then.
func receive[T any](ctx context.Context, c *course, ch <-chan T, fn func(T)) error {
	look := time.NewTicker(min(250*time.Millisecond, c.Patience/4+1))
	defer look.Stop()
	for {
		select {
		case value := <-ch:
			fn(value)
			return nil
		case err := <-c.given:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-look.C:
			if still := c.since() - time.Duration(c.last.Load()); still > c.Patience {
				return fmt.Errorf("nothing has come for %s", still.Round(time.Second))
			}
		}
	}
}

// round runs one run, and compares. It tells whether the next one can begin.
func (c *course) round(ctx context.Context, id string) bool {
	var stop *stopping
	if rand.IntN(100) < c.Stop {
		stop = &stopping{seq: 1 + uint64(rand.IntN(c.Emit.Count+2)), now: make(chan struct{})}
	}
	c.stopAt.Store(stop)
	c.asked.Store(int64(c.since()))
	number, err := c.nodes.start(ctx, c.thread, c.request(id))
	if err != nil {
		if ctx.Err() == nil {
			c.fault(func(f *Faults) { f.Refused++ }, "%s: %v", id, err)
		}
		return false
	}
	c.moved()
	c.tally.note(func(r *Report) { r.Runs.Accepted++ })
	over := make(chan struct{})
	stops := make(chan thread.Cursor, 1)
	go func() { stops <- c.stop(ctx, id, stop, over) }()
	runs, err := c.collect(ctx, number)
	close(over)
	stoppedAt := <-stops
	if err != nil {
		c.tally.note(func(r *Report) { r.Runs.Unfinished++ })
		c.say(ctx, "%s: %d of %d viewers have seen its end: %v", id, len(runs), len(c.viewers), err)
		return false
	}
	return c.compare(ctx, id, runs, stoppedAt)
}

func (c *course) request(id string) request {
	r := request{AgentID: c.agent.ID, RunID: id, Messages: []message{}, Forward: map[string]any{"emit": c.Emit}}
	if c.Message != "" {
		r.Messages = append(r.Messages, message{ID: "message of " + id, Role: "user", Content: c.Message})
	}
	return r
}

// collect waits until all viewers have seen the end of a run.
func (c *course) collect(ctx context.Context, number uint64) (map[int]*passage, error) {
	runs := map[int]*passage{}
	for len(runs) < len(c.viewers) {
		err := receive(ctx, c, c.done, func(s saw) {
			if s.run.number == number {
				runs[s.viewer] = s.run
			}
		})
		if err != nil {
			return runs, err
		}
	}
	return runs, nil
}

// stop stops the run when it has come as far as it should, and returns where the answer says it ends.
func (c *course) stop(ctx context.Context, id string, when *stopping, over <-chan struct{}) (at thread.Cursor) {
	if when == nil {
		return at
	}
	select {
	case <-when.now:
	case <-over:
		return at
	}
	began := time.Now()
	answer, err := c.nodes.stop(ctx, c.thread, id)
	if err == nil && answer.Stopped {
		c.tally.took(&c.tally.stops, time.Since(began))
		at, err = thread.ParseCursor(answer.Cursor)
	}
	if err != nil && ctx.Err() == nil {
		c.fault(func(f *Faults) { f.Refused++ }, "stop %s: %v", id, err)
	}
	return at
}

// compare compares what the viewers saw with what the API has.
func (c *course) compare(ctx context.Context, id string, runs map[int]*passage, stopped thread.Cursor) bool {
	record, err := c.nodes.record(ctx, c.thread, runs[0].number)
	if err != nil {
		if ctx.Err() == nil {
			c.fault(func(f *Faults) { f.Refused++ }, "the events of %s: %v", id, err)
		}
		return false
	}
	c.tally.end(record.end, record.events)
	switch {
	case !record.ended:
		c.fault(func(f *Faults) { f.Different++ }, "%s: the API has no end of it", id)
	case c.agent.Type == "demo" && !record.parted && record.end.Type == "RUN_FINISHED" && record.end.Outcome.Type == "" &&
		record.events != c.Emit.Count+4:
		c.fault(func(f *Faults) { f.Different++ }, "%s: it has %d events, and %d were asked for", id, record.events, c.Emit.Count+4)
	}
	for i, p := range runs {
		switch {
		case p.parted || record.parted:
			c.tally.note(func(r *Report) { r.Unchecked++ })
		case !p.same(record):
			c.fault(func(f *Faults) { f.Different++ }, "%s: viewer %d has %d events, the API %d, and they differ", id, i, p.events, record.events)
		case stopped.Run > 0 && p.at != stopped:
			c.fault(func(f *Faults) { f.Late++ }, "%s: its stop was answered %s, and it ends at %s", id, stopped, p.at)
		}
	}
	return true
}

// The viewers report to the course.

func (c *course) moved() { c.last.Store(int64(c.since())) }

func (c *course) ended(viewer int, p *passage) {
	select {
	case c.done <- saw{viewer, p}:
	default:
		c.fault(func(f *Faults) { f.Repeated++ }, "viewer %d: runs end again and again", viewer)
	}
}

func (c *course) firstEvent() {
	c.tally.took(&c.tally.first, c.since()-time.Duration(c.asked.Load()))
}

func (c *course) reached(pos thread.Cursor) {
	if s := c.stopAt.Load(); s != nil && pos.Seq >= s.seq {
		s.once.Do(func() { close(s.now) })
	}
}

func (c *course) give(err error) {
	select {
	case c.given <- err:
	default:
	}
}

func (c *course) fault(count func(*Faults), format string, args ...any) {
	c.tally.fault(count, "thread %s: %s", c.thread, fmt.Sprintf(format, args...))
}

// say tells what went wrong, unless all of it is being ended.
func (c *course) say(ctx context.Context, format string, args ...any) {
	if ctx.Err() == nil {
		c.fault(func(*Faults) {}, format, args...)
	}
}

// remove deletes the thread. One that was never used is not there.
func (c *course) remove(ctx context.Context) {
	err := c.nodes.delete(ctx, c.thread)
	var refused *client.Refusal
	if errors.As(err, &refused) && refused.Status == http.StatusNotFound {
		return
	}
	if err != nil {
		c.fault(func(f *Faults) { f.Refused++ }, "delete: %v", err)
	}
}
