package sqllog

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// reload reads the index from the file: when the log is opened, and when it is not known whether a commit took
// place. Leases of this process keep what the file does not hold of them; others count as expired.
func (c *committer) reload(ctx context.Context) error {
	tx, err := c.writer.BeginTx(ctx, nil)
	if err != nil {
		return classify(err)
	}
	defer tx.Rollback()
	ld := loader{ctx: ctx, tx: tx, c: c, contents: make(map[thread.ID]*content), places: make(map[uint64]place)}
	if err := ld.load(); err != nil {
		return err
	}
	c.index.replace(ld.contents, ld.given)
	c.janitor.reset(ld.contents, ld.first)
	c.stale = false
	return nil
}

// loader reads an index.
type loader struct {
	ctx      context.Context
	tx       *sql.Tx
	c        *committer
	contents map[thread.ID]*content
	places   map[uint64]place // of the runs, by ref
	given    counters
	first    uint64 // id of the first row of log_recent; 0 if there is none
}

func (ld *loader) load() error {
	for text, into := range map[string]*uint64{selectToken: &ld.given.token, selectDropped: &ld.given.ref} {
		if err := ld.tx.QueryRowContext(ld.ctx, text).Scan(into); err != nil {
			return classify(err)
		}
	}
	if err := ld.each(selectRuns, ld.run); err != nil {
		return err
	}
	if err := ld.each(selectRecent, ld.recent); err != nil {
		return err
	}
	return ld.each(selectLeases, ld.lease)
}

// each calls take on each row.
func (ld *loader) each(text string, take func(*sql.Rows) error) error {
	rows, err := ld.tx.QueryContext(ld.ctx, text)
	if err != nil {
		return classify(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := take(rows); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return classify(err)
	}
	return nil
}

func (ld *loader) content(id thread.ID) *content {
	c := ld.contents[id]
	if c == nil {
		c = &content{}
		ld.contents[id] = c
	}
	return c
}

func (ld *loader) run(rows *sql.Rows) error {
	var id thread.ID
	var r run
	var drop, last, kind sql.NullInt64
	if err := rows.Scan(&r.ref, &id, &r.number, &r.id, &drop, &last, &kind); err != nil {
		return classify(err)
	}
	if drop.Valid {
		r.dropAt = time.UnixMilli(drop.Int64)
	}
	r.settled = uint64(last.Int64)
	r.last = r.settled
	r.ended = thread.Kind(kind.Int64) == thread.KindEnd
	ld.given.ref = max(ld.given.ref, r.ref)
	ld.places[r.ref] = place{thread: id, run: r.number}
	c := ld.content(id)
	c.runs = append(c.runs, r)
	return nil
}

// recent takes a row of log_recent. Those of runs that were dropped, and those that are settled, are still there.
func (ld *loader) recent(rows *sql.Rows) error {
	var id, ref uint64
	var e thread.Entry
	if err := rows.Scan(&id, &ref, &e.Seq, &e.Kind, &e.Data); err != nil {
		return classify(err)
	}
	ld.given.id = id
	if ld.first == 0 {
		ld.first = id
	}
	ld.given.ref = max(ld.given.ref, ref)
	at, known := ld.places[ref]
	if !known {
		return nil
	}
	c := ld.content(at.thread)
	i, _ := c.find(at.run)
	r := &c.runs[i]
	switch {
	case e.Seq <= r.last:
		return nil
	case e.Seq > r.last+1:
		return fmt.Errorf("%w: entries after %d of run %d of thread %s are missing",
			thread.ErrCorrupt, r.last, r.number, at.thread)
	case len(r.recent) == 0:
		r.firstID = id
	}
	e.Run, e.RunID = r.number, r.id
	r.recent = append(r.recent, e)
	r.bytes += len(e.Data)
	r.last, r.ended = e.Seq, e.Kind == thread.KindEnd
	return nil
}

func (ld *loader) lease(rows *sql.Rows) error {
	var found lease
	var acquired int64
	var stopBy sql.NullString
	if err := rows.Scan(&found.Thread, &found.RunID, &found.Owner, &found.Token, &acquired, &stopBy); err != nil {
		return classify(err)
	}
	if known := ld.c.index.content(found.Thread).lease; known.is(found.Token) {
		found = *known
	} else {
		found.Acquired = time.UnixMilli(acquired)
		found.Deadline = ld.c.opts.Now()
		found.asked = make(chan struct{}, 1)
	}
	if stopBy.Valid {
		found.Stop = &thread.StopRequest{RunID: found.RunID, By: stopBy.String}
	}
	ld.content(found.Thread).lease = &found
	return nil
}
