package sqllog

import (
	"context"
	"database/sql"
	"runtime"
	"time"
)

// How much one transaction takes at most; a single request may be greater.
const (
	groupRequests = 1024
	groupEntries  = 4096
	groupBytes    = 4 << 20
)

// How long the committer goes on trying while another program holds the file.
const (
	busyFirst   = time.Millisecond
	busyLongest = 100 * time.Millisecond
	busyTotal   = 10 * time.Second
)

// request is something to be done by the committer.
type request struct {
	entries int // how much it writes
	bytes   int
	// op decides on the request by what the group knows, and does it in the group. It may be called several times, for
	// other groups. Its error is that of a request that is refused; it has then done nothing.
	op   func(*group) error
	done chan error // receives once
}

// committer is who writes: one goroutine that everybody's requests go to.
type committer struct {
	index  *index
	opts   Options
	writer *sql.DB
	stmts  map[string]*sql.Stmt // of the writer, by text

	queue   chan *request
	stop    chan struct{} // closed by Close
	stopped chan struct{} // closed when the goroutine has returned

	janitor janitor // the goroutine's
	stale   bool    // the goroutine's: it is not known whether the last commit took place
}

// enter refuses a call whose context is done, or that comes after Close.
func (c *committer) enter(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case <-c.stop:
		return errClosed
	default:
		return nil
	}
}

// do has the committer do a request and returns its result. If ctx is done before, it returns its cause, and the
// request may be done or not.
func (c *committer) do(ctx context.Context, r *request) error {
	if err := c.enter(ctx); err != nil {
		return err
	}
	r.done = make(chan error, 1)
	select {
	case c.queue <- r:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.stop:
		return errClosed
	}
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.stopped:
	}
	select {
	case err := <-r.done:
		return err
	default:
		return errClosed
	}
}

// commitAll is the committer: it commits what is queued, group by group, and between groups cleans up, until Close.
func (c *committer) commitAll() {
	defer close(c.stopped)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(c.janitor.wait(c.opts.Now()))
		select {
		case <-c.stop:
			return
		default:
		}
		select {
		case <-c.stop:
			return
		case r := <-c.queue:
			c.commit(c.gather(r))
			c.clean()
		case <-timer.C:
			c.clean()
		}
	}
}

// gather takes what is queued behind r, as much as one transaction takes. It first lets goroutines run that are
// ready to: those whose requests were just answered come with their next, and are taken in one group instead of the
// first of them alone.
func (c *committer) gather(r *request) []*request {
	group := []*request{r}
	entries, bytes := r.entries, r.bytes
	yielded := false
	for len(group) < groupRequests && entries < groupEntries && bytes < groupBytes {
		select {
		case r := <-c.queue:
			group = append(group, r)
			entries += r.entries
			bytes += r.bytes
			yielded = false
		default:
			if yielded {
				return group
			}
			runtime.Gosched()
			yielded = true
		}
	}
	return group
}

// commit does the requests in one transaction and answers them.
func (c *committer) commit(requests []*request) {
	refusals := make([]error, len(requests))
	if err := c.try(requests, refusals); err != nil {
		for i := range refusals {
			refusals[i] = err
		}
	}
	for i, r := range requests {
		r.done <- refusals[i]
	}
}

// try does the requests, as often as it takes while another program holds the file. Its error is that of all of
// the requests: none of them is known to be done.
func (c *committer) try(requests []*request, refusals []error) error {
	if c.stale {
		if err := c.reload(context.Background()); err != nil {
			return err
		}
	}
	started := time.Now()
	for wait := busyFirst; ; wait = min(2*wait, busyLongest) {
		g := newGroup(c)
		err := g.do(requests, refusals)
		if err == nil {
			c.index.publish(g)
			for _, fn := range g.after {
				fn()
			}
			return nil
		}
		if !isBusy(err) || time.Since(started) > busyTotal || !c.pause(wait) {
			return classify(err)
		}
	}
}

// pause waits, and tells whether the log is still open.
func (c *committer) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.stop:
		return false
	}
}
