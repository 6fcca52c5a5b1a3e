package sqlitefile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/threadcast/threadcast/persistence/thread"
)

// lockPatience is how long the lock of another process is waited for.
const lockPatience = time.Second

// lockFile takes the lock that keeps other threadcast processes away from the file. It is on a file beside it, which
// stays there: removing it could let two processes lock two files of one name. The system gives the lock
// back when the process ends, however it ends. A process that was just killed may take a moment to be gone: so it is
// tried for a second.
func lockFile(ctx context.Context, path string) (*flock.Flock, error) {
	name := path + ".lock"
	lock := flock.New(name, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
	bounded, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	locked, err := lock.TryLockContext(bounded, 10*time.Millisecond)
	if ctx.Err() != nil {
		return nil, errors.Join(context.Cause(ctx), lock.Unlock())
	}
	if err != nil && bounded.Err() == nil {
		return nil, fmt.Errorf("lock the database file; its directory has to be writable: %w", err)
	}
	if !locked {
		return nil, fmt.Errorf("%w: %s is in use by another threadcast process%s; embedded mode is one node: stop that "+
			"process, or choose another file with --database",
			thread.ErrUnavailable, path, holder(name))
	}
	// Only for people: the lock is what counts.
	_ = os.WriteFile(name, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600)
	return lock, nil
}

// holder tells which process wrote the lock file.
func holder(name string) string {
	text, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" (process %d)", pid)
}
