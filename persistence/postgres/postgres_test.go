package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/pgtest"
	"github.com/threadcast/threadcast/persistence/postgres"
	"github.com/threadcast/threadcast/persistence/thread"
)

// open opens a database that closes with t.
func open(t *testing.T, url string, opts postgres.Options) *sql.DB {
	t.Helper()
	db, err := postgres.Open(t.Context(), url, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func setting(t *testing.T, db *sql.DB, name string) string {
	t.Helper()
	var value string
	if err := db.QueryRowContext(t.Context(), `SELECT current_setting($1)`, name).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

func exec(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// with adds parameters to a URL.
func with(t *testing.T, address string, change func(*url.URL, url.Values)) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	change(u, query)
	u.RawQuery = query.Encode()
	return u.String()
}

func TestLimits(t *testing.T) {
	address := pgtest.Database(t)
	check := func(t *testing.T, db *sql.DB, want map[string]string) {
		t.Helper()
		for name, value := range want {
			if got := setting(t, db, name); got != value {
				t.Errorf("%s is %s, want %s", name, got, value)
			}
		}
	}
	t.Run("are there by default", func(t *testing.T) {
		db := open(t, address, postgres.Options{})
		check(t, db, map[string]string{
			"application_name": "threadcast", "client_encoding": "UTF8",
			"statement_timeout": "30s", "lock_timeout": "15s", "idle_in_transaction_session_timeout": "10s",
		})
		if got := db.Stats().MaxOpenConnections; got != 10 {
			t.Errorf("%d connections are allowed, want 10", got)
		}
	})
	t.Run("may be chosen", func(t *testing.T) {
		db := open(t, address, postgres.Options{
			MaxConns: 3, StatementTimeout: time.Minute, LockTimeout: 20 * time.Second, IdleInTransaction: 1500 * time.Millisecond,
		})
		check(t, db, map[string]string{
			"statement_timeout": "1min", "lock_timeout": "20s", "idle_in_transaction_session_timeout": "1500ms",
		})
		if got := db.Stats().MaxOpenConnections; got != 3 {
			t.Errorf("%d connections are allowed, want 3", got)
		}
	})
	t.Run("are overruled by the URL", func(t *testing.T) {
		db := open(t, with(t, address, func(_ *url.URL, q url.Values) {
			q.Set("statement_timeout", "7s")
			q.Set("application_name", "another")
			q.Set("pool_max_conns", "5")
			q.Set("pool_max_conn_lifetime", "1h")
			q.Set("pool_max_conn_idle_time", "1m")
		}), postgres.Options{})
		check(t, db, map[string]string{"statement_timeout": "7s", "lock_timeout": "15s", "application_name": "another"})
		if got := db.Stats().MaxOpenConnections; got != 5 {
			t.Errorf("%d connections are allowed, want 5", got)
		}
	})
	t.Run("end a statement that takes too long", func(t *testing.T) {
		db := open(t, address, postgres.Options{StatementTimeout: 50 * time.Millisecond})
		if _, err := db.ExecContext(t.Context(), `SELECT pg_sleep(60)`); err == nil || !strings.Contains(err.Error(), "57014") {
			t.Errorf("error is %v", err)
		}
	})
}

// TestNoStatementIsKept lets another node change a table under a connection that has read it.
func TestNoStatementIsKept(t *testing.T) {
	db := open(t, pgtest.Database(t), postgres.Options{MaxConns: 1})
	exec(t, db, `CREATE TABLE t (a int)`)
	for range 2 {
		rows, err := db.QueryContext(t.Context(), `SELECT * FROM t WHERE a = $1`, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
		exec(t, db, `ALTER TABLE t ADD COLUMN IF NOT EXISTS b int`)
	}
}

func TestWhatCannotBeUsedIsNamed(t *testing.T) {
	address := pgtest.Database(t)
	admin := open(t, address, postgres.Options{})
	for _, c := range []struct {
		name   string
		change func(*url.URL, url.Values)
		want   error
		says   string
	}{
		{"a wrong password", func(u *url.URL, _ url.Values) { u.User = url.UserPassword("threadcast", "hunter2") },
			thread.ErrUnavailable, "the password is wrong"},
		{"a user that is none", func(u *url.URL, _ url.Values) { u.User = url.UserPassword("nobody", "hunter2") },
			thread.ErrUnavailable, "the password is wrong"},
		{"a database that is none", func(u *url.URL, _ url.Values) { u.Path = "/missing" },
			thread.ErrUnavailable, "createdb"},
		{"a server that is none", func(_ *url.URL, q url.Values) { q.Set("host", "/does/not/exist") },
			thread.ErrUnavailable, "is it running"},
		{"a parameter that the server does not know", func(_ *url.URL, q url.Values) { q.Set("colour", "green") },
			thread.ErrUnavailable, "it answers with an error"},
		{"a parameter of the pool that is not a number", func(_ *url.URL, q url.Values) { q.Set("pool_max_conns", "many") },
			thread.ErrBadInput, "pool_max_conns is a number"},
		{"a parameter of the pool that is not a time", func(_ *url.URL, q url.Values) { q.Set("pool_max_conn_lifetime", "5") },
			thread.ErrBadInput, "pool_max_conn_lifetime is a duration"},
		{"a way of TLS that is none", func(_ *url.URL, q url.Values) { q.Set("host", "127.0.0.1"); q.Set("sslmode", "perhaps") },
			thread.ErrBadInput, "has a value that is none"},
	} {
		t.Run(c.name, func(t *testing.T) { refused(t, with(t, address, c.change), c.want, c.says) })
	}
	t.Run("a database of another encoding", func(t *testing.T) {
		exec(t, admin, `CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C' LOCALE_PROVIDER libc`)
		defer exec(t, admin, `DROP DATABASE latin WITH (FORCE)`)
		refused(t, with(t, address, func(u *url.URL, _ url.Values) { u.Path = "/latin" }), postgres.ErrUnfit, "LATIN1")
	})
	t.Run("a replica", func(t *testing.T) {
		exec(t, admin, `CREATE DATABASE replica`)
		defer exec(t, admin, `DROP DATABASE replica WITH (FORCE)`)
		exec(t, admin, `ALTER DATABASE replica SET default_transaction_read_only = on`)
		refused(t, with(t, address, func(u *url.URL, _ url.Values) { u.Path = "/replica" }), thread.ErrUnavailable, "name the primary")
	})
}

// refused expects an error of a kind that says something, and not the password.
func refused(t *testing.T, address string, want error, says string) {
	t.Helper()
	db, err := postgres.Open(t.Context(), address, postgres.Options{})
	if err == nil {
		db.Close()
		t.Fatalf("no error, want %v", want)
	}
	if !errors.Is(err, want) || !strings.Contains(err.Error(), says) {
		t.Errorf("error is %v, want %v that says %q", err, want, says)
	}
	u, parseErr := url.Parse(address)
	if parseErr != nil {
		t.Fatal(parseErr)
	}
	if password, ok := u.User.Password(); ok && strings.Contains(err.Error(), password) {
		t.Errorf("%v shows the password", err)
	}
}

func TestNoErrorShowsAPassword(t *testing.T) {
	const secret = "hunter2"
	for _, address := range []string{
		"postgres://u:" + secret + "%zz@127.0.0.1:1/db",
		"postgres://u:" + secret + "/x@127.0.0.1:1/db",
		"postgres://u:" + secret + "@127.0.0.1:port/db",
		"postgres://u:" + secret + "@127.0.0.1:1/db?sslmode=never",
		"postgres://u@127.0.0.1:1/db?sslmode=never&password=" + secret,
		"postgres://u:" + secret + "@127.0.0.1:1/db",
		"postgres://u:" + secret + "@127.0.0.1:1,127.0.0.1:2/db",
		"host=127.0.0.1 password=" + secret,
		"mysql://u:" + secret + "@h/db",
	} {
		db, err := postgres.Open(t.Context(), address, postgres.Options{})
		if err == nil {
			db.Close()
			t.Errorf("%s is a database", address)
			continue
		}
		for e := err; e != nil; e = errors.Unwrap(e) {
			if strings.Contains(e.Error(), secret) {
				t.Errorf("%s: %v", address, e)
			}
		}
	}
}

func TestACallerWhoLeavesIsTold(t *testing.T) {
	left := errors.New("left")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(left)
	if _, err := postgres.Open(ctx, pgtest.Database(t), postgres.Options{}); !errors.Is(err, left) || errors.Is(err, thread.ErrUnavailable) {
		t.Errorf("error is %v, want %v", err, left)
	}
}

// TestAServerThatIsSilentIsGivenUp keeps a start from waiting for ever.
func TestAServerThatIsSilentIsGivenUp(t *testing.T) {
	s := pgtest.Start(t)
	address := s.Database(t)
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	refused(t, with(t, address, func(_ *url.URL, q url.Values) { q.Set("connect_timeout", "1") }), thread.ErrUnavailable, "is it running")
}
