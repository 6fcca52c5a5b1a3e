package redislog

import (
	"context"
	"runtime"
)

// How much one pipeline takes at most; a single request may be greater.
const (
	groupRequests = 256
	groupBytes    = 4 << 20
)

// request is an append that waits for its turn, or for its reply.
type request struct {
	ctx   context.Context
	call  call
	bytes int
	done  chan reply // receives once
}

// appender sends appends: all that wait, of whatever runs, in one pipeline, and the next one when the replies are
// there. So appends of one run never overtake each other.
type appender struct {
	log   *Log
	queue chan *request
}

func newAppender(l *Log) *appender {
	return &appender{log: l, queue: make(chan *request, groupRequests)}
}

// do has a request sent and returns its reply. If its context is done before, it returns the cause.
func (a *appender) do(r *request) ([]any, error) {
	if r.ctx.Err() != nil {
		return nil, context.Cause(r.ctx)
	}
	r.done = make(chan reply, 1)
	select {
	case <-a.log.stop:
		return nil, errClosed
	default:
	}
	select {
	case a.queue <- r:
	case <-r.ctx.Done():
		return nil, context.Cause(r.ctx)
	case <-a.log.stop:
		return nil, errClosed
	}
	select {
	case got := <-r.done:
		return got.list, got.err
	case <-r.ctx.Done():
		return nil, context.Cause(r.ctx)
	case <-a.log.stop:
		return nil, errClosed
	}
}

func (a *appender) run() {
	for {
		select {
		case <-a.log.stop:
			return
		case r := <-a.queue:
			a.send(a.gather(r))
		}
	}
}

// gather takes what is queued behind r, as much as one pipeline takes. It first lets goroutines run that are ready to:
// those whose requests were just answered come with their next.
func (a *appender) gather(r *request) []*request {
	group, bytes, yielded := []*request{r}, r.bytes, false
	for len(group) < groupRequests && bytes < groupBytes {
		select {
		case r := <-a.queue:
			group = append(group, r)
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

// send sends the requests that somebody still waits for, and answers them.
func (a *appender) send(group []*request) {
	calls, waiting := make([]call, 0, len(group)), group[:0]
	for _, r := range group {
		if r.ctx.Err() == nil {
			calls = append(calls, r.call)
			waiting = append(waiting, r)
		}
	}
	if len(calls) == 0 {
		return
	}
	replies, err := a.log.runAll(context.Background(), a.log.runs, calls)
	for i, r := range waiting {
		if err != nil {
			r.done <- reply{err: err}
		} else {
			r.done <- replies[i]
		}
	}
}
