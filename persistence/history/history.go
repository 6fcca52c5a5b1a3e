package history

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libtnb/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/threadcast/threadcast/persistence/thread"
)

// Options are the choices of a [History]. The zero value is fit for use.
type Options struct {
	Logger *slog.Logger     // gets the migrations, and statements slower than a second; nil for nobody
	Now    func() time.Time // the clock; nil for time.Now
	// Patience is how long a Postgres server may take to answer a statement, waiting for a connection included, before
	// the connection is given up; longer than the server's own limits; 45 seconds if zero.
	Patience time.Duration
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Patience == 0 {
		o.Patience = 45 * time.Second
	}
	return o
}

// History is the runs of all threads in one database. It is safe for concurrent use, starts no goroutine, and
// does not close the handles it was given.
//
// Its methods return the errors of package thread, wrapped with what was being done. A database that does not
// answer, or not within the context's deadline, is [thread.ErrUnavailable]; one whose content cannot be read is
// [thread.ErrCorrupt]. A write that returned an ErrUnavailable may have been made or not.
type History struct {
	*database
	line
	directory
}

// line is the part of a history that deals with what waits for its turn.
type line struct{ *database }

// directory is the part of a history that deals with lists, and with the database as a whole.
type directory struct{ *database }

// database is what the parts of a history share.
type database struct {
	writer *gorm.DB
	reader *gorm.DB
	turn   chan struct{} // holds one while a transaction is under way on a writer that is shared; nil otherwise
	now    func() time.Time
	wait   func(ctx context.Context, d time.Duration) error

	patience time.Duration // how long a statement may take; without bound if zero

	threadColumns string // what a threadRow selects
	listener      atomic.Pointer[func(thread.Change)]
}

// New returns the history in db, for reading and writing, and brings its schema up to date. db is a Postgres
// database, or an SQLite file with a single connection.
func New(db *gorm.DB, opts Options) (*History, error) {
	opts = opts.withDefaults()
	session := db.Session(quiet(opts))
	return open(context.Background(), session, session, opts)
}

// NewSQLite returns the history in an SQLite file and brings its schema up to date. writer has one connection,
// shared with whatever else writes to the file, and begins its transactions immediately (_txlock=immediate);
// reader is a pool of connections to the same file, which may be read-only. The file is in WAL mode, so that
// neither waits for the other.
func NewSQLite(writer, reader *sql.DB, opts Options) (*History, error) {
	opts = opts.withDefaults()
	w, err := openSQLite(writer, opts)
	if err != nil {
		return nil, err
	}
	r, err := openSQLite(reader, opts)
	if err != nil {
		return nil, err
	}
	h, err := open(context.Background(), w, r, opts)
	if err != nil {
		return nil, err
	}
	// Connections are handed out in the order of asking. One transaction of ours at a time asks, so that the live log,
	// which shares the writer, never waits for more than one however many runs are accepted or saved at once.
	h.turn = make(chan struct{}, 1)
	return h, nil
}

func openSQLite(conn *sql.DB, opts Options) (*gorm.DB, error) {
	config := &gorm.Config{TranslateError: true, DisableAutomaticPing: true, Logger: newLogger(opts.Logger)}
	db, err := gorm.Open(sqlite.New(sqlite.Config{Conn: conn}), config)
	if err != nil {
		return nil, fmt.Errorf("open the history: %w", meaning(context.Background(), err))
	}
	return db.Session(quiet(opts)), nil
}

// quiet is how all statements are made: without a transaction around each, which write gives to those that
// need one, and without GORM's own log.
func quiet(opts Options) *gorm.Session {
	return &gorm.Session{NewDB: true, SkipDefaultTransaction: true, Logger: newLogger(opts.Logger)}
}

func open(ctx context.Context, writer, reader *gorm.DB, opts Options) (*History, error) {
	db := &database{writer: writer, reader: reader, now: opts.Now, wait: pause}
	latest, err := schema.Parse(&Particulars{}, &sync.Map{}, schema.NamingStrategy{})
	if err != nil {
		return nil, fmt.Errorf("open the history: %w", err)
	}
	db.threadColumns = selectThread(latest.DBNames)
	if err := db.migrate(ctx, migrations, opts.Logger); err != nil {
		return nil, fmt.Errorf("open the history: %w", err)
	}
	return &History{database: db, line: line{db}, directory: directory{db}}, nil
}

// selectThread lists the columns of a threadRow: those of the thread, and those of its latest run by its own
// names with a prefix.
func selectThread(latest []string) string {
	var b strings.Builder
	b.WriteString("threads.*, run_state.pending, run_state.pending_calls, " +
		"(SELECT COUNT(*) FROM queued_runs WHERE queued_runs.thread_id = threads.id) AS queued")
	for _, name := range latest {
		fmt.Fprintf(&b, ", latest.%[1]s AS latest_%[1]s", name)
	}
	return b.String()
}

const (
	attempts  = 8 // how often a transaction is tried before its error is returned
	firstWait = 4 * time.Millisecond
)

// write runs fn in a transaction of the writer, again if another writer was in its way: fn may be called more
// than once, each time on a database that the time before left unchanged.
func (h *database) write(ctx context.Context, fn func(tx *gorm.DB) error) error {
	return h.writeThen(ctx, fn, func() {})
}

// writeThen is write, and calls then once the transaction is made, before another one begins if they share the writer.
func (h *database) writeThen(ctx context.Context, fn func(tx *gorm.DB) error, then func()) error {
	if h.turn != nil {
		select {
		case h.turn <- struct{}{}:
			defer func() { <-h.turn }()
		case <-ctx.Done():
			return meaning(ctx, ctx.Err())
		}
	}
	for attempt := 1; ; attempt++ {
		err := h.try(ctx, fn)
		if err == nil {
			then()
			return nil
		}
		if attempt == attempts || !retryable(err) {
			return meaning(ctx, err)
		}
		d := firstWait << attempt
		if stop := h.wait(ctx, d/2+rand.N(d/2)); stop != nil {
			return meaning(ctx, err)
		}
	}
}

// read is where statements outside a transaction begin.
func (h *database) read(ctx context.Context) *gorm.DB { return h.reader.WithContext(ctx) }

// pause waits for d, or until ctx is done.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
