package sqllog

import (
	"context"
	"database/sql"

	"github.com/threadcast/threadcast/persistence/thread"
)

// group is what one transaction does. What its requests decide by is the index with the group's own changes over it,
// so that each request sees those before it. If the transaction fails, the group is thrown away.
type group struct {
	log *Log
	tx  *sql.Tx // nil until there is something to write
	err error   // of the first statement that failed

	contents  map[thread.ID]*content // those that the group changes
	token     uint64
	born      uint64
	rows      []any       // of the entries to insert, five values each
	batches   []batch     // for the tails
	forgotten []thread.ID // whose tails end
	after     []func()    // to be called once it is committed
}

// batch are entries that were added to a thread by one request.
type batch struct {
	thread  thread.ID
	entries []thread.Entry
}

func newGroup(l *Log) *group {
	return &group{log: l, contents: make(map[thread.ID]*content), token: l.index.token, born: l.index.born}
}

// do does the requests and commits. refusals receives the errors of those that are refused.
func (g *group) do(requests []*request, refusals []error) error {
	for i, r := range requests {
		refusals[i] = r.op(g)
		if g.err != nil {
			break
		}
	}
	g.flush()
	if g.tx == nil {
		return g.err
	}
	if g.err != nil {
		g.tx.Rollback() // its error says no more than that the statement failed
		return g.err
	}
	if err := g.tx.Commit(); err != nil {
		g.log.stale = !isBusy(err)
		return err
	}
	return nil
}

// view returns what the thread will hold if the group is committed, to be read.
func (g *group) view(id thread.ID) *content {
	if c := g.contents[id]; c != nil {
		return c
	}
	return g.log.index.content(id)
}

// edit returns what the thread will hold if the group is committed, to be changed.
func (g *group) edit(id thread.ID) *content {
	c := g.contents[id]
	if c == nil {
		c = g.log.index.content(id).clone()
		g.contents[id] = c
	}
	return c
}

// begin begins the transaction when it is needed for the first time, and tells whether it goes on.
func (g *group) begin() bool {
	if g.tx == nil && g.err == nil {
		g.tx, g.err = g.log.writer.BeginTx(context.Background(), nil)
	}
	return g.err == nil
}

// exec executes one of the prepared statements and returns how many rows it changed; 0 after an error, which ends
// the group.
func (g *group) exec(text string, args ...any) int64 {
	if !g.begin() {
		return 0
	}
	result, err := g.tx.StmtContext(context.Background(), g.log.stmts[text]).Exec(args...)
	if err != nil {
		g.err = err
		return 0
	}
	n, err := result.RowsAffected()
	g.err = err
	return n
}

// query reads one value within the transaction; an error other than [sql.ErrNoRows] ends the group.
func (g *group) query(text string, args []any, into ...any) error {
	if !g.begin() {
		return g.err
	}
	err := g.tx.QueryRowContext(context.Background(), text, args...).Scan(into...)
	if err != nil && err != sql.ErrNoRows {
		g.err = err
	}
	return err
}

// insert notes entries of a thread to be inserted.
func (g *group) insert(id thread.ID, entries []thread.Entry) {
	for _, e := range entries {
		data := e.Data
		if data == nil {
			data = []byte{} // nil would be NULL
		}
		g.rows = append(g.rows, string(id), int64(e.Run), int64(e.Seq), int64(e.Kind), data)
	}
}

// flush inserts the entries that were noted, many with one statement.
func (g *group) flush() {
	rows := g.rows
	g.rows = nil
	for _, n := range insertSizes {
		for ; len(rows) >= 5*n && g.err == nil; rows = rows[5*n:] {
			g.exec(insertEntries(n), rows[:5*n]...)
		}
	}
}
