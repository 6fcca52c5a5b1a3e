package history

import (
	"context"

	"gorm.io/gorm"

	"github.com/threadcast/threadcast/persistence/thread"
)

// Listen has fn told, from now on, of every change that this History makes to what lists show of a thread, once it is
// made: in the order of its making if the database is an SQLite file, else almost. fn must not block. Of several the
// last one is told.
func (h directory) Listen(fn func(thread.Change)) { h.listener.Store(&fn) }

// changes are what a transaction changes of what lists show.
type changes struct {
	h    *database
	tx   *gorm.DB
	list []thread.Change
}

// alter is write for what lists show: who listens is told of what fn notes, once it is made.
func (h *database) alter(ctx context.Context, fn func(tx *gorm.DB, made *changes) error) error {
	made := &changes{h: h}
	return h.writeThen(ctx, func(tx *gorm.DB) error {
		made.tx, made.list = tx, nil
		return fn(tx, made)
	}, made.tell)
}

// note is called when the change is written, and the revision of the thread with it.
func (c *changes) note(what thread.Happening, id Text) error {
	if c.h.listener.Load() == nil {
		return nil
	}
	t, err := c.h.oneThread(c.tx, id)
	if err == nil {
		c.add(what, t.thread())
	}
	return err
}

// queue notes that another number of runs waits on a thread.
func (c *changes) queue(t Thread) error {
	if err := c.tx.Model(&t).Update("revision", t.Revision+1).Error; err != nil {
		return err
	}
	return c.note(thread.Enqueued, t.ID)
}

func (c *changes) add(what thread.Happening, t thread.Thread) {
	c.list = append(c.list, thread.Change{What: what, Thread: t, At: fromMillis(millis(c.h.now()))})
}

func (c *changes) tell() {
	if listener := c.h.listener.Load(); listener != nil {
		for _, change := range c.list {
			(*listener)(change)
		}
	}
}

// endedAs is what the end of a run is in a list.
func endedAs(outcome string) thread.Happening {
	if outcome == string(thread.OutcomeWaiting) {
		return thread.Waiting
	}
	return thread.Ended
}
