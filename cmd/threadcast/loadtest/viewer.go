package loadtest

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"

	"github.com/threadcast/threadcast/cmd/threadcast/client"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/web/wire"
)

// viewer follows a thread over sockets, one after the other.
type viewer struct {
	c        *course
	index    int
	url      string // of the node that it is connected to
	pos      thread.Cursor
	run      *passage // what it has of the run at pos
	holes    []hole   // what it has not got
	restless bool
	leaves   []uint64 // the seqs of the present run at which it cuts its connection
}

// hole is a part of a run that has not come: the positions after from, up to to.
type hole struct{ from, to thread.Cursor }

var errLeft = errors.New("the viewer has left")

// follow stays with the thread until ctx ends.
func (v *viewer) follow(ctx context.Context) {
	joined := false
	for try := 0; ctx.Err() == nil; v.url = v.c.nodes.Any() {
		s, err := v.connect(ctx)
		if err == nil {
			if !joined {
				joined = true
				v.c.here <- struct{}{}
			}
			try = 0
			err = v.read(ctx, s)
			s.Cut()
			if errors.Is(err, errLeft) {
				v.c.tally.note(func(r *Report) { r.Returns.Resumes++ })
				continue
			}
			if ctx.Err() == nil {
				v.c.tally.note(func(r *Report) { r.Returns.Reconnects++ })
			}
		}
		var refused *client.Refusal
		if errors.As(err, &refused) && refused.Status == 0 && !refused.Again() && ctx.Err() == nil {
			v.c.fault(func(f *Faults) { f.Refused++ }, "viewer %d: %v", v.index, err)
			v.c.give(err)
			return
		}
		if client.Backoff(ctx, try) != nil {
			return
		}
		try++
	}
}

func (v *viewer) connect(ctx context.Context) (*client.Socket, error) {
	if err := v.c.pacer.wait(ctx); err != nil {
		return nil, err
	}
	return v.c.nodes.Join(ctx, v.url, client.Membership{Thread: v.c.thread, After: v.pos.String(), Replay: "raw"})
}

// read takes what comes on a socket, until that ends or it is time to cut it.
func (v *viewer) read(ctx context.Context, s *client.Socket) error {
	for {
		f, err := s.Next(ctx)
		if err != nil {
			return err
		}
		v.c.moved()
		step, err := client.Next(v.pos, f.Event, f.Payload)
		var broken *client.Break
		switch {
		case errors.As(err, &broken):
			v.mend(broken)
		case err != nil:
			v.c.fault(func(f *Faults) { f.Protocol++ }, "viewer %d at %s: %v", v.index, v.pos, err)
		case step.Event == wire.EventEvents:
			v.take(step)
		case step.Event == wire.EventReset:
			v.c.tally.note(func(r *Report) { r.Returns.Resets++ })
			v.pos, v.run = step.To, nil
		case step.Event == wire.EventClose || step.Event == wire.EventError:
			return errors.New("the membership ended")
		}
		if len(v.leaves) > 0 && v.pos.Seq >= v.leaves[0] && !v.run.done() {
			v.leaves = slices.DeleteFunc(v.leaves, func(seq uint64) bool { return seq <= v.pos.Seq })
			return errLeft
		}
	}
}

// take takes a batch that follows what came before.
func (v *viewer) take(s client.Step) {
	if v.run == nil || v.run.number != s.From.Run {
		v.begin(s)
	}
	v.pos = s.To
	was := v.run.done()
	m := v.run.take(s)
	v.c.tally.note(func(r *Report) {
		r.Deliveries += int64(len(s.Events))
		r.Faults.Lost += int64(m.lost)
		r.Faults.Repeated += int64(m.repeated)
		r.Faults.Late += int64(m.late)
	})
	if m != (misfit{}) {
		v.c.fault(func(*Faults) {}, "viewer %d: the batch from %s to %s has %d events", v.index, s.From, s.To, len(s.Events))
	}
	v.c.reached(v.pos)
	if v.run.done() && !was {
		v.leaves = nil
		done := *v.run
		v.c.ended(v.index, &done)
	}
}

// begin begins a run.
func (v *viewer) begin(s client.Step) {
	if v.run != nil && !v.run.done() {
		v.c.fault(func(f *Faults) { f.Lost++ }, "viewer %d at %s: the end of the run is missing", v.index, v.pos)
	}
	v.run, v.leaves = newPassage(s.From.Run), nil
	if s.From.Seq > 0 { // its beginning has been lost
		v.run.skip(s.From)
	} else if !s.Replay {
		v.c.firstEvent()
	}
	if v.restless {
		for range v.c.Drops {
			v.leaves = append(v.leaves, 1+uint64(rand.IntN(v.c.Emit.Count+4)))
		}
		slices.Sort(v.leaves)
	}
}

// mend counts what a push that does not continue has missed or repeated, and goes on behind it.
func (v *viewer) mend(b *client.Break) {
	s, n := b.Step, int64(len(b.Step.Events))
	from, to := s.From, s.To
	if s.Event == wire.EventCaughtUp {
		from = to
	}
	if v.pos.Before(from) {
		start := v.pos
		if from.Run > start.Run {
			start = thread.Cursor{Run: from.Run}
		}
		v.holes = append(v.holes, hole{start, from})
		v.c.fault(func(f *Faults) { f.Lost += int64(from.Seq - start.Seq) }, "viewer %d: %v", v.index, b)
		if v.run != nil && v.run.number == from.Run {
			v.run.skip(from)
		}
		if v.pos = from; s.Event == wire.EventEvents {
			v.take(s)
		}
		return
	}
	if v.run != nil {
		v.run.parted = true
	}
	for i, h := range v.holes {
		if !from.Before(h.from) && !h.to.Before(to) {
			v.holes = slices.Delete(v.holes, i, i+1)
			v.c.fault(func(f *Faults) { f.Lost, f.Swapped = f.Lost-n, f.Swapped+n }, "viewer %d: too late: %v", v.index, b)
			return
		}
	}
	v.c.fault(func(f *Faults) { f.Repeated += n }, "viewer %d: %v", v.index, b)
}
