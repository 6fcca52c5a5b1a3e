package sqllog

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// Drop removes a run's entries after keep has passed, at once if keep is not positive. The time is kept in the file
// and survives the process. A repeated call replaces the earlier one. Dropping what is not there is no error.
func (l *Log) Drop(ctx context.Context, id thread.ID, number uint64, keep time.Duration) error {
	err := l.do(ctx, &request{op: func(g *group) error {
		i, found := g.view(id).find(number)
		switch {
		case !found:
		case keep <= 0:
			g.remove(id, i)
		default:
			at := l.opts.Now().Add(keep)
			r := &g.edit(id).runs[i]
			r.dropAt = at
			g.exec(updateDropAt, at.UnixMilli(), int64(r.ref))
			g.after = append(g.after, func() { l.janitor.note(due{at: at, thread: id, run: number}) })
		}
		return nil
	}})
	if err != nil {
		return fmt.Errorf("drop run %d of thread %s: %w", number, id, err)
	}
	return nil
}

// Forget removes all entries of the lease's thread at once, and ends its tails with [thread.ErrDeleted]. The lease stays:
// who deletes a thread holds it meanwhile, so that no run begins. [thread.ErrLeaseLost] if it is not the current one.
func (l *Log) Forget(ctx context.Context, ls thread.Lease) error {
	id := ls.Thread
	err := l.do(ctx, &request{op: func(g *group) error {
		if !g.view(id).lease.is(ls.Token) {
			return thread.ErrLeaseLost
		}
		for n := len(g.view(id).runs); n > 0; n-- {
			// Who deletes a thread wants it gone now, not when its turn comes.
			g.exec(forgetRecent, int64(g.view(id).runs[n-1].ref))
			g.remove(id, n-1)
		}
		g.forgotten = append(g.forgotten, id)
		return nil
	}})
	if err != nil {
		return fmt.Errorf("forget thread %s: %w", id, err)
	}
	return nil
}

// remove takes the thread's ith run out of the log. Its rows in log_entries become garbage, those in log_recent go
// when their turn comes.
func (g *group) remove(id thread.ID, i int) {
	c := g.edit(id)
	r := c.runs[i]
	c.runs = slices.Delete(c.runs, i, i+1)
	g.exec(deleteRun, int64(r.ref))
	if r.settled > 0 {
		g.exec(insertGarbage, int64(r.ref))
		g.after = append(g.after, g.c.janitor.litter)
	}
}
