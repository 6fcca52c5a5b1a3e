package main_test

import (
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"

	_ "modernc.org/sqlite" // reads the node's file

	"github.com/threadcast/threadcast/persistence/postgres"
)

// database opens the nodes' database beside them: their file, for reading, or Postgres.
func (s *stage) database() *sql.DB {
	s.Helper()
	if s.place.postgres {
		db, err := postgres.Open(s.ctx, s.shared.database, postgres.Options{MaxConns: 1})
		s.must(err)
		s.Cleanup(func() { _ = db.Close() })
		return db
	}
	db, err := sql.Open("sqlite", "file:"+s.node.database()+"?mode=ro&_pragma=busy_timeout(5000)")
	s.must(err)
	s.Cleanup(func() { _ = db.Close() })
	return db
}

// tables are the columns of all tables of the database, by table.
func (s *stage) tables(db *sql.DB) map[string][]string {
	s.Helper()
	query := `SELECT m.name || ' ' || c.name FROM sqlite_master AS m, pragma_table_info(m.name) AS c WHERE m.type = 'table'`
	if s.place.postgres {
		query = `SELECT table_name || ' ' || column_name FROM information_schema.columns WHERE table_schema = 'public'`
	}
	tables := map[string][]string{}
	for _, name := range s.column(db, query) {
		table, column, _ := strings.Cut(name, " ")
		tables[table] = append(tables[table], column)
	}
	return tables
}

// tablesNaming returns the tables of the database that have the thread's id in some column.
func (s *stage) tablesNaming(db *sql.DB, thread string) []string {
	s.Helper()
	where := map[string]bool{}
	for table, columns := range s.tables(db) {
		for _, column := range columns {
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

// awaitEmptyLog waits until the live log of the stage has no run any more. (In a file, the rows of log_recent that belonged
// to runs are reused in their turn.)
func (s *stage) awaitEmptyLog() {
	s.Helper()
	if s.place.redis {
		eventually(s, patience, "the live log is empty", func() bool {
			return len(s.keys("stream:*"))+len(s.keys("active:*")) == 0
		})
		return
	}
	db := s.database()
	eventually(s, patience, "the live log is empty", func() bool {
		return s.rows(db, "log_runs")+s.rows(db, "log_entries")+s.rows(db, "log_garbage") == 0
	})
}

// keys are the names of the keys in Redis that match a pattern, without what the stage's all begin with.
func (s *stage) keys(pattern string) []string {
	s.Helper()
	c := s.shared.redis.Client()
	defer func() { _ = c.Close() }()
	var names []string
	all := c.Scan(s.ctx, 0, s.prefix+pattern, 1000).Iterator()
	for all.Next(s.ctx) {
		names = append(names, strings.TrimPrefix(all.Val(), s.prefix))
	}
	s.must(all.Err())
	return names
}

// checkOnlyATombstone checks that of a deleted thread, the only one of its stage, nothing is left but its tombstone.
func (s *stage) checkOnlyATombstone(thread string) {
	s.Helper()
	s.awaitEmptyLog()
	if where := s.tablesNaming(s.database(), thread); !slices.Equal(where, []string{"threads"}) {
		s.Errorf("the deleted thread is still in the tables %v", where)
	}
}
