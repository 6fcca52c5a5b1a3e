package loadtest

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// load is what all threads share.
type load struct {
	Config
	nodes *nodes
	agent agent
	pacer *pacer
	tally *tally
	began time.Time
}

func (l *load) since() time.Duration { return time.Since(l.began) }

// Run makes the load that c describes and returns what it found. The error is not about what it found: it says that the load
// cannot be made, because c is not what it should be, the process may not open as many sockets, or no node answers;
// or it is the cause of ctx, with what was found until then. It leaves no goroutine and no connection behind.
func Run(ctx context.Context, c Config) (Report, error) {
	if err := c.Check(); err != nil {
		return Report{}, err
	}
	if c.AtOnce == 0 || c.AtOnce > c.Threads {
		c.AtOnce = c.Threads
	}
	if err := enoughFiles(c.AtOnce * c.Viewers); err != nil {
		return Report{}, err
	}
	c.Prefix = cmp.Or(c.Prefix, "load-"+strings.ToLower(rand.Text()[:8])+"-")
	l := &load{Config: c, nodes: newNodes(c), pacer: newPacer(c.Connect), tally: &tally{}, began: time.Now()}
	defer l.nodes.Close()
	var err error
	if l.agent, err = l.nodes.find(ctx, c.Agent); err != nil {
		return Report{}, err
	}
	l.tally.r.Nodes, l.tally.r.Threads, l.tally.r.Viewers = len(c.URLs), c.Threads, c.Viewers
	over := make(chan struct{})
	var told sync.WaitGroup
	told.Go(func() { l.tell(over) })
	used := l.all(ctx)
	close(over)
	told.Wait()
	if c.Delete {
		l.clear(ctx, used)
	}
	return l.tally.report(), context.Cause(ctx)
}

// all takes the threads through their courses, AtOnce of them at a time, and returns how many there were.
func (l *load) all(ctx context.Context) int {
	start := make(chan struct{})
	var missing atomic.Int64
	missing.Store(int64(l.AtOnce))
	joined := func() {
		if missing.Add(-1) == 0 {
			l.tally.begin(l.began)
			close(start)
		}
	}
	var next atomic.Int64
	var workers sync.WaitGroup
	for range l.AtOnce {
		workers.Go(func() {
			for n := next.Add(1); n <= int64(l.Threads) && ctx.Err() == nil; n = next.Add(1) {
				newCourse(l, int(n)).run(ctx, joined, start)
			}
		})
	}
	workers.Wait()
	return min(int(next.Load()), l.Threads)
}

// clear deletes the threads that were used, also when ctx has ended.
func (l *load) clear(ctx context.Context, used int) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.Patience)
	defer cancel()
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(used, 16) {
		workers.Go(func() {
			for n := next.Add(1); n <= int64(used) && ctx.Err() == nil; n = next.Add(1) {
				newCourse(l, int(n)).remove(ctx)
			}
		})
	}
	workers.Wait()
}

// tell writes how far it is, over and over in one line.
func (l *load) tell(over <-chan struct{}) {
	if l.Progress == nil {
		return
	}
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	var before int64
	for {
		select {
		case <-over:
			fmt.Fprint(l.Progress, "\r\033[K")
			return
		case <-tick.C:
		}
		l.tally.mu.Lock()
		r, n := l.tally.r, len(l.tally.r.Messages)
		l.tally.mu.Unlock()
		ended := r.Runs.Finished + r.Runs.Stopped + r.Runs.Failed
		fmt.Fprintf(l.Progress, "\r\033[K%s  runs %d of %d, %d ended  deliveries %d, %d/s  wrong %d",
			l.since().Round(time.Second), r.Runs.Accepted, l.Threads*l.Runs, ended, r.Deliveries, (r.Deliveries-before)*2, n)
		before = r.Deliveries
	}
}
