package sqlitefile

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"github.com/libtnb/sqlite"

	"github.com/threadcast/threadcast/persistence/thread"
)

// File is an open SQLite file, held by this process alone among threadcast processes.
type File struct {
	path   string
	lock   *flock.Flock
	writer *sql.DB
	reader *sql.DB

	closing sync.Once
	closed  error // of Close
}

// Options are the choices of [Open]. The zero value is right for a server.
type Options struct {
	// BusyTimeout is how long a statement waits for a program other than threadcast that has locked the file;
	// 5 seconds if zero.
	BusyTimeout time.Duration
	// Readers is the greatest number of connections that read at the same time; 4 if zero.
	Readers int
	// CheckLimit is the size in bytes below which Open checks every page of the file; 64 MiB if zero, never if
	// negative.
	CheckLimit int64
}

func (o Options) withDefaults() Options {
	if o.BusyTimeout == 0 {
		o.BusyTimeout = 5 * time.Second
	}
	if o.Readers == 0 {
		o.Readers = 4
	}
	if o.CheckLimit == 0 {
		o.CheckLimit = 64 << 20
	}
	return o
}

// Open opens the SQLite file at path, and creates it if it is not there; its directory has to exist. The file must
// lie on a disk: the names of databases in memory are refused with [thread.ErrBadInput]. A file that is not a SQLite
// database, or a damaged or truncated one, is [thread.ErrCorrupt] and stays as it is. One that is in use by another
// threadcast, or locked by another program for longer than [Options.BusyTimeout], is [thread.ErrUnavailable]; that
// latter wait does not heed ctx. Every error names the file and says what to do.
func Open(ctx context.Context, path string, opts Options) (*File, error) {
	path, err := resolve(path)
	if err != nil {
		return nil, err
	}
	lock, err := lockFile(ctx, path)
	if err != nil {
		return nil, err
	}
	f := &File{path: path, lock: lock}
	if err := f.open(ctx, opts.withDefaults()); err != nil {
		return nil, errors.Join(err, f.abandon())
	}
	return f, nil
}

// resolve returns the one absolute name of the file, whichever way it is named.
func resolve(path string) (string, error) {
	if path == "" || strings.Contains(path, ":memory:") || strings.HasPrefix(path, "file:") ||
		strings.Contains(path, "://") || strings.ContainsRune(path, 0) {
		return "", fmt.Errorf("%w: %q does not name a database file; give the path of a file on a disk",
			thread.ErrBadInput, path)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find the database file %s: %w", path, err)
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("open %s: the directory %s does not exist; create it first: %w", abs, filepath.Dir(abs), err)
	}
	if err != nil {
		return "", fmt.Errorf("open %s: %w", abs, err)
	}
	abs = filepath.Join(dir, filepath.Base(abs))
	if target, err := filepath.EvalSymlinks(abs); err == nil {
		abs = target
	}
	if info, err := os.Stat(abs); err == nil && !info.Mode().IsRegular() {
		return "", fmt.Errorf("%w: %s is not a regular file; give the path of a database file", thread.ErrBadInput, abs)
	}
	return abs, nil
}

// Path is the absolute path of the file.
func (f *File) Path() string { return f.path }

// Writer is the connection that writes; there is exactly one, which all users of the file share. Its transactions
// take the write lock when they begin. Whoever holds it holds up every other write of the process.
func (f *File) Writer() *sql.DB { return f.writer }

// Reader is the pool of connections that read; a write through it is refused. It sees everything that is committed.
func (f *File) Reader() *sql.DB { return f.reader }

// Close writes what is in the write-ahead log to the file, closes all connections and gives the file up. Whoever
// uses them has to be done. A second call changes nothing and returns what the first did.
func (f *File) Close() error {
	f.closing.Do(func() {
		err := f.reader.Close()
		if _, cerr := f.checkpoint(context.Background()); cerr != nil {
			err = errors.Join(err, describe(f.path, "close", cerr))
		}
		f.closed = errors.Join(err, f.abandon())
	})
	return f.closed
}

// abandon gives the file up as it is.
func (f *File) abandon() error {
	var errs []error
	for _, db := range []*sql.DB{f.reader, f.writer} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(append(errs, f.lock.Unlock())...)
}

func (f *File) open(ctx context.Context, opts Options) error {
	if err := create(f.path); err != nil {
		return err
	}
	if err := inspect(f.path); err != nil {
		return err
	}
	var err error
	if f.writer, err = sql.Open(sqlite.DriverName, writerDSN(f.path, opts)); err != nil {
		return describe(f.path, "open", err)
	}
	f.writer.SetMaxOpenConns(1)
	f.writer.SetMaxIdleConns(1)
	if err := f.verify(ctx, opts.CheckLimit); err != nil {
		return err
	}
	if f.reader, err = sql.Open(sqlite.DriverName, readerDSN(f.path, opts)); err != nil {
		return describe(f.path, "open", err)
	}
	f.reader.SetMaxOpenConns(opts.Readers)
	f.reader.SetMaxIdleConns(opts.Readers)
	return describe(f.path, "open", f.reader.PingContext(ctx))
}

// create makes the file, for its owner alone, if it is not there, and tells whether it can be written.
func create(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("open the database file for writing; its directory has to be writable as well: %w", err)
	}
	return file.Close()
}

// checkpoint moves what is in the write-ahead log to the file, and tells whether it could move all of it.
func (f *File) checkpoint(ctx context.Context) (bool, error) {
	var busy, pages, moved int
	err := f.writer.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &moved)
	return busy == 0, err
}
