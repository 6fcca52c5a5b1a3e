package history

import (
	"context"
	"fmt"

	"gorm.io/gorm"

	"github.com/threadcast/threadcast/persistence/thread"
)

// Edit changes how a thread stands in lists, and returns it as it is then. What is so already is no change.
// [thread.ErrNotFound] if there is no such thread, or it is deleted; [thread.ErrBadInput] if it cannot have the name.
func (h directory) Edit(ctx context.Context, id thread.ID, edit thread.Edit) (thread.Thread, error) {
	err := edit.Check()
	var edited threadRow
	if err == nil {
		err = h.alter(ctx, func(tx *gorm.DB, made *changes) error {
			t, err := lockThread(tx, id)
			if err == nil && t.Deleted != 0 {
				err = thread.ErrNotFound
			}
			if err != nil {
				return err
			}
			if err := made.edit(&t, edit); err != nil {
				return err
			}
			edited, err = h.oneThread(tx, t.ID)
			return err
		})
	}
	if err != nil {
		return thread.Thread{}, fmt.Errorf("edit thread %q: %w", id, err)
	}
	return edited.thread(), nil
}

// edit makes each change by itself, with a revision of its own.
func (c *changes) edit(t *Thread, edit thread.Edit) error {
	if edit.Name != nil && Text(*edit.Name) != t.Name {
		t.Name = Text(*edit.Name)
		if err := c.save(t, thread.Renamed); err != nil {
			return err
		}
	}
	if edit.Archived == nil || *edit.Archived == (t.Archived != 0) {
		return nil
	}
	if *edit.Archived {
		t.Archived = millis(c.h.now())
		return c.save(t, thread.Archived)
	}
	t.Archived = 0
	return c.save(t, thread.Unarchived)
}

func (c *changes) save(t *Thread, what thread.Happening) error {
	t.Revision++
	if err := c.tx.Save(t).Error; err != nil {
		return err
	}
	return c.note(what, t.ID)
}
