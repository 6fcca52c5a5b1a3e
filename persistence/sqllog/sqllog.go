package sqllog

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// Log is a live log with its leases. Its methods are safe for concurrent use.
type Log struct {
	*committer
	reader *sql.DB
	page   *sql.Stmt // of the reader

	closing sync.Once
	closed  error // of Close
}

// Options are the choices of [New]. The zero value is right for a server.
type Options struct {
	// Now is the clock that leases and retention go by; [time.Now] if nil.
	Now func() time.Time
	// Logger hears of what fails with nobody there to be told; [slog.Default] if nil.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

// New returns the log that is in the file, and creates its tables if they are not there. writer has to have exactly
// one connection, whose transactions are immediate; others may use it as well. reader has to see what writer commits.
// New starts a goroutine, which [Log.Close] ends. The leases in the file count as expired. Tables of a later
// version of the program are refused. ctx is for New alone.
func New(ctx context.Context, writer, reader *sql.DB, opts Options) (*Log, error) {
	l := &Log{reader: reader, committer: &committer{
		index:   &index{topics: make(map[thread.ID]*topic)},
		opts:    opts.withDefaults(),
		writer:  writer,
		stmts:   make(map[string]*sql.Stmt),
		queue:   make(chan *request, 1024),
		stop:    make(chan struct{}),
		stopped: make(chan struct{}),
	}}
	if err := l.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open the live log: %w", err), l.closeStatements())
	}
	go l.commitAll()
	return l, nil
}

func (l *Log) open(ctx context.Context) error {
	if err := migrate(ctx, l.writer); err != nil {
		return err
	}
	for _, text := range statements() {
		stmt, err := l.writer.PrepareContext(ctx, text) //nolint:sqlclosecheck // closeStatements closes it
		if err != nil {
			return classify(err)
		}
		l.stmts[text] = stmt
	}
	var err error
	if l.page, err = l.reader.PrepareContext(ctx, selectPage); err != nil {
		return classify(err)
	}
	return l.reload(ctx)
}

// Close ends all tails, waits for the commit that is under way and stops the committer. What waits for a commit, and
// every later call, gets [thread.ErrUnavailable]. The database handles stay open.
func (l *Log) Close() error {
	l.closing.Do(func() {
		close(l.stop)
		<-l.stopped
		l.index.endTails(errClosed)
		l.closed = l.closeStatements()
	})
	return l.closed
}

func (l *Log) closeStatements() error {
	var first error
	for _, stmt := range l.stmts {
		if err := stmt.Close(); err != nil && first == nil {
			first = err
		}
	}
	if l.page != nil {
		if err := l.page.Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}
