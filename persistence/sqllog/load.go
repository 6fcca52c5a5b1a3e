package sqllog

import (
	"context"
	"database/sql"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// reload reads the index from the file: when the log is opened, and when it is not known whether a commit took
// place. Leases of this process keep what the file does not hold of them; others count as expired.
func (l *Log) reload(ctx context.Context) error {
	tx, err := l.writer.BeginTx(ctx, nil)
	if err != nil {
		return classify(err)
	}
	defer tx.Rollback()
	ld := loader{ctx: ctx, tx: tx, log: l, contents: make(map[thread.ID]*content), born: l.index.born}
	if err := ld.load(); err != nil {
		return classify(err)
	}
	l.index.replace(ld.contents, ld.token, ld.born)
	l.janitor.reset(ld.contents, ld.litter)
	l.stale = false
	return nil
}

// loader reads an index.
type loader struct {
	ctx      context.Context
	tx       *sql.Tx
	log      *Log
	contents map[thread.ID]*content
	token    uint64
	born     uint64
	litter   bool // there is garbage
}

func (ld *loader) load() error {
	if err := ld.tx.QueryRowContext(ld.ctx, selectToken).Scan(&ld.token); err != nil {
		return err
	}
	if err := ld.tx.QueryRowContext(ld.ctx, `SELECT EXISTS (`+selectGarbage+`)`).Scan(&ld.litter); err != nil {
		return err
	}
	if err := ld.each(selectRuns, ld.run); err != nil {
		return err
	}
	return ld.each(selectLeases, ld.lease)
}

// each calls take on each row.
func (ld *loader) each(text string, take func(*sql.Rows) error) error {
	rows, err := ld.tx.QueryContext(ld.ctx, text)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := take(rows); err != nil {
			return err
		}
	}
	return rows.Err()
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
	var drop sql.NullInt64
	var kind thread.Kind
	if err := rows.Scan(&id, &r.number, &r.id, &drop, &r.last, &kind); err != nil {
		return err
	}
	if drop.Valid {
		r.dropAt = time.UnixMilli(drop.Int64)
	}
	r.ended = kind == thread.KindEnd
	ld.born++
	r.birth = ld.born
	c := ld.content(id)
	c.runs = append(c.runs, r)
	return nil
}

func (ld *loader) lease(rows *sql.Rows) error {
	var found lease
	var acquired int64
	var stopBy sql.NullString
	if err := rows.Scan(&found.Thread, &found.RunID, &found.Owner, &found.Token, &acquired, &stopBy); err != nil {
		return err
	}
	if known := ld.log.index.content(found.Thread).lease; known.is(found.Token) {
		found = *known
	} else {
		found.Acquired = time.UnixMilli(acquired)
		found.Deadline = ld.log.opts.Now()
		found.asked = make(chan struct{}, 1)
	}
	if stopBy.Valid {
		found.Stop = &thread.StopRequest{RunID: found.RunID, By: stopBy.String}
	}
	ld.content(found.Thread).lease = &found
	return nil
}
