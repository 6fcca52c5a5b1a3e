package historytest

import (
	"errors"

	"github.com/google/go-cmp/cmp"

	"github.com/threadcast/threadcast/persistence/thread"
)

func isNotFound(err error) bool { return errors.Is(err, thread.ErrNotFound) }

// want reports an error that is not the wanted one; a nil want is no error.
func (b *bench) want(want, got error) {
	b.Helper()
	if !errors.Is(got, want) {
		b.Errorf("error is %v, want %v", got, want)
	}
}

// same reports a value that differs from the wanted one.
func (b *bench) same(what string, want, got any) {
	b.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		b.Errorf("%s differs (-want +got):\n%s", what, diff)
	}
}

// texts are the events of a run.
func texts(run thread.Run) []string {
	out := make([]string, len(run.Events))
	for i, e := range run.Events {
		out[i] = string(e.Data)
	}
	return out
}

// ids are the ids of runs.
func ids(runs []thread.Run) []thread.RunID {
	out := make([]thread.RunID, len(runs))
	for i, run := range runs {
		out[i] = run.ID
	}
	return out
}

// threadIDs are the ids of threads.
func threadIDs(threads []thread.Thread) []thread.ID {
	out := make([]thread.ID, len(threads))
	for i, t := range threads {
		out[i] = t.ID
	}
	return out
}
