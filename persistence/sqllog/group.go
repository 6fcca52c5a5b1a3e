package sqllog

import (
	"context"
	"database/sql"
	"errors"

	"github.com/threadcast/threadcast/persistence/thread"
)

// group is what one transaction does. What its requests decide by is the index with the group's own changes over it,
// so that each request sees those before it. If the transaction fails, the group is thrown away.
type group struct {
	c   *committer
	tx  *sql.Tx // nil until there is something to write
	err error   // of the first statement that failed

	contents  map[thread.ID]*content // those that the group changes
	given     counters
	recent    []any       // rows to be inserted into log_recent
	entries   []any       // rows to be inserted into log_entries
	batches   []batch     // for the tails
	forgotten []thread.ID // whose tails end
	after     []func()    // to be called once it is committed
}

// batch are entries that were added to a thread by one request.
type batch struct {
	thread  thread.ID
	entries []thread.Entry
}

func newGroup(c *committer) *group {
	return &group{c: c, contents: make(map[thread.ID]*content), given: c.index.given}
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
		g.c.stale = !isBusy(err)
		return err
	}
	return nil
}

// view returns what the thread will hold if the group is committed, to be read.
func (g *group) view(id thread.ID) *content {
	if c := g.contents[id]; c != nil {
		return c
	}
	return g.c.index.content(id)
}

// edit returns what the thread will hold if the group is committed, to be changed.
func (g *group) edit(id thread.ID) *content {
	c := g.contents[id]
	if c == nil {
		c = g.c.index.content(id).clone()
		g.contents[id] = c
	}
	return c
}

// begin begins the transaction when it is needed for the first time, and tells whether it goes on.
func (g *group) begin() bool {
	if g.tx == nil && g.err == nil {
		g.tx, g.err = g.c.writer.BeginTx(context.Background(), nil)
	}
	return g.err == nil
}

// exec executes one of the prepared statements and returns how many rows it changed; 0 after an error, which ends
// the group.
func (g *group) exec(text string, args ...any) int64 {
	if !g.begin() {
		return 0
	}
	stmt := g.tx.StmtContext(context.Background(), g.c.stmts[text]) //nolint:sqlclosecheck // the transaction closes it
	result, err := stmt.Exec(args...)
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
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		g.err = err
	}
	return err
}

// flush inserts the rows that were noted, many with one statement.
func (g *group) flush() {
	g.insert(recentTable, g.recent)
	g.insert(entriesTable, g.entries)
	g.recent, g.entries = nil, nil
}

func (g *group) insert(t table, rows []any) {
	for _, n := range insertSizes {
		for width := n * t.columns; len(rows) >= width && g.err == nil; rows = rows[width:] {
			g.exec(t.insert(n), rows[:width]...)
		}
	}
}
