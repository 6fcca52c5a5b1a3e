package sqllog

import (
	"context"
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

// do has the committer do a request and returns its result. If ctx is done before, it returns its cause, and the
// request may be done or not.
func (l *Log) do(ctx context.Context, r *request) error {
	if err := l.enter(ctx); err != nil {
		return err
	}
	r.done = make(chan error, 1)
	select {
	case l.queue <- r:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-l.stop:
		return errClosed
	}
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-l.stopped:
	}
	select {
	case err := <-r.done:
		return err
	default:
		return errClosed
	}
}

// commitAll is the committer: it commits what is queued, group by group, and between groups cleans up, until Close.
func (l *Log) commitAll() {
	defer close(l.stopped)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(l.janitor.wait(l.opts.Now()))
		select {
		case <-l.stop:
			return
		default:
		}
		select {
		case <-l.stop:
			return
		case r := <-l.queue:
			l.commit(l.gather(r))
			l.clean()
		case <-timer.C:
			l.clean()
		}
	}
}

// gather takes what is queued behind r, as much as one transaction takes.
func (l *Log) gather(r *request) []*request {
	group := []*request{r}
	entries, bytes := r.entries, r.bytes
	for len(group) < groupRequests && entries < groupEntries && bytes < groupBytes {
		select {
		case r := <-l.queue:
			group = append(group, r)
			entries += r.entries
			bytes += r.bytes
		default:
			return group
		}
	}
	return group
}

// commit does the requests in one transaction and answers them.
func (l *Log) commit(requests []*request) {
	refusals := make([]error, len(requests))
	if err := l.try(requests, refusals); err != nil {
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
func (l *Log) try(requests []*request, refusals []error) error {
	if l.stale {
		if err := l.reload(context.Background()); err != nil {
			return err
		}
	}
	started := time.Now()
	for wait := busyFirst; ; wait = min(2*wait, busyLongest) {
		g := newGroup(l)
		err := g.do(requests, refusals)
		if err == nil {
			l.index.publish(g)
			for _, fn := range g.after {
				fn()
			}
			return nil
		}
		if !isBusy(err) || time.Since(started) > busyTotal || !l.pause(wait) {
			return classify(err)
		}
	}
}

// pause waits, and tells whether the log is still open.
func (l *Log) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.stop:
		return false
	}
}
