package sqlitefile

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/gofrs/flock"

	"github.com/threadcast/threadcast/persistence/thread"
)

// lockFile takes the lock that keeps other threadcast processes away from the file. It is on a file beside it, which
// stays there: removing it could let two processes lock two files of one name. The system gives the lock
// back when the process ends, however it ends.
func lockFile(path string) (*flock.Flock, error) {
	name := path + ".lock"
	lock := flock.New(name, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
	locked, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock the database file; its directory has to be writable: %w", err)
	}
	if !locked {
		return nil, fmt.Errorf("%s is in use by another threadcast process%s; embedded mode is one node: stop that "+
			"process, choose another database file, or start the nodes with Redis and Postgres: %w",
			path, holder(name), thread.ErrUnavailable)
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
