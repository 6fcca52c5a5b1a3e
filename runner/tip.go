package runner

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/threadcast/threadcast/persistence/thread"
)

// tip is the last that the log has of a thread, whoever wrote it.
type tip struct {
	thread.Entry
	ended bool
	end   thread.End // of the run, if it has ended
}

// tip looks at the last entry of a thread. It is the zero one if there is none, or if another came in this moment.
func (r scribe) tip(ctx context.Context, id thread.ID) (tip, error) {
	head, err := r.Heads.Head(ctx, id)
	if err != nil || head.Seq == 0 {
		return tip{}, err
	}
	last, err := r.Log.Read(ctx, id, thread.Cursor{Run: head.Run, Seq: head.Seq - 1}, 1)
	if err != nil || len(last) == 0 {
		return tip{}, err
	}
	t := tip{Entry: last[0], ended: last[0].Kind == thread.KindEnd}
	if t.ended {
		if err := json.Unmarshal(t.Data, &t.end); err != nil {
			return tip{}, fmt.Errorf("read the end of run %s: %w: %w", t.RunID, thread.ErrCorrupt, err)
		}
	}
	return t, nil
}

// endedAs tells whether the log has the end of the thread's latest run, and that is this one.
func (t tip) endedAs(run thread.RunID) bool { return t.ended && t.RunID == run }
