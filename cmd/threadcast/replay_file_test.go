package main_test

import (
	"database/sql"
	"fmt"
	"maps"
	"slices"

	_ "modernc.org/sqlite" // reads the node's file
)

// file opens the node's file for reading, beside the node.
func (s *stage) file() *sql.DB {
	s.Helper()
	db, err := sql.Open("sqlite", "file:"+s.node.database()+"?mode=ro&_pragma=busy_timeout(5000)")
	s.must(err)
	s.Cleanup(func() { _ = db.Close() })
	return db
}

// tablesNaming returns the tables of the file that have the thread's id in some column.
func (s *stage) tablesNaming(db *sql.DB, thread string) []string {
	s.Helper()
	where := map[string]bool{}
	for _, table := range s.column(db, `SELECT name FROM sqlite_master WHERE type = 'table'`) {
		for _, column := range s.column(db, fmt.Sprintf(`SELECT name FROM pragma_table_info('%s')`, table)) {
			if s.rows(db, fmt.Sprintf(`"%s" WHERE CAST("%s" AS TEXT) = '%s'`, table, column, thread)) > 0 {
				where[table] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(where))
}

// rows counts the rows of a table, or of some of them.
func (s *stage) rows(db *sql.DB, table string) (n int) {
	s.Helper()
	s.must(db.QueryRowContext(s.ctx, "SELECT count(*) FROM "+table).Scan(&n))
	return n
}

func (s *stage) column(db *sql.DB, query string) []string {
	s.Helper()
	rows, err := db.QueryContext(s.ctx, query)
	s.must(err)
	defer func() { _ = rows.Close() }()
	var values []string
	for rows.Next() {
		var v string
		s.must(rows.Scan(&v))
		values = append(values, v)
	}
	s.must(rows.Err())
	return values
}

// awaitEmptyLog waits until the live log of the node has no run any more. (The rows of log_recent that belonged to runs are
// reused in their turn.)
func (s *stage) awaitEmptyLog(db *sql.DB) {
	s.Helper()
	eventually(s, patience, "the live log is empty", func() bool {
		return s.rows(db, "log_runs")+s.rows(db, "log_entries")+s.rows(db, "log_garbage") == 0
	})
}

// checkOnlyATombstone checks that of a deleted thread, the only one of its node, nothing is left but its tombstone.
func (s *stage) checkOnlyATombstone(thread string) {
	s.Helper()
	db := s.file()
	s.awaitEmptyLog(db)
	if where := s.tablesNaming(db, thread); !slices.Equal(where, []string{"threads"}) {
		s.Errorf("the deleted thread is still in the tables %v", where)
	}
}
