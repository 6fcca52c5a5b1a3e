package web

import (
	"context"
	"errors"
	"fmt"

	"github.com/threadcast/threadcast/persistence/thread"
)

// verb is what somebody wants to do with a thread.
type verb string

// What can be done with a thread by somebody who is not its owner is told by [Server.may].
const (
	toSee    verb = "see"    // its events, messages, state and runs, and to watch it
	toRun    verb = "run"    // start and stop runs
	toEdit   verb = "edit"   // name and archive
	toDelete verb = "delete" // remove it
)

// may tells whether a caller may do something with a thread: nil, or [thread.ErrNotFound], as for a thread that is not
// there. For now whoever knows the id of a thread may see it and run agents on it; all else is its owner's.
func (s *Server) may(who caller, t thread.Thread, v verb) error {
	switch v {
	case toSee, toRun:
		return nil
	case toEdit, toDelete:
	}
	if t.Owner != who.User {
		return fmt.Errorf("%w: there is no thread %q", thread.ErrNotFound, t.ID)
	}
	return nil
}

// permit is [Server.may] for a thread that has to be looked up. One that is not there, or not any more, is nobody's: what
// is done with it finds that out.
func (s *Server) permit(ctx context.Context, who caller, id thread.ID, v verb) error {
	t, err := s.Directory.Thread(ctx, id)
	switch {
	case errors.Is(err, thread.ErrNotFound):
		return nil
	case err != nil:
		return err
	case t.Deleted:
		return nil
	}
	return s.may(who, t, v)
}

// edit changes how a thread of the caller's stands in lists.
func (s *Server) edit(ctx context.Context, who caller, id thread.ID, edit thread.Edit) (thread.Thread, error) {
	err := s.permit(ctx, who, id, toEdit)
	if err != nil {
		return thread.Thread{}, err
	}
	t, err := s.Directory.Edit(ctx, id, edit)
	return t, absent(id, err)
}

// erase stops the active run of a thread of the caller's, and removes the thread. One that has begun is carried out,
// whether its client waits or not.
func (s *Server) erase(ctx context.Context, who caller, id thread.ID) error {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), stopTimeout, thread.ErrUnavailable)
	defer cancel()
	looking, looked := look(ctx)
	err := s.permit(looking, who, id, toDelete)
	looked()
	if err != nil {
		return err
	}
	return absent(id, s.Runs.Delete(ctx, id, who.name()))
}
