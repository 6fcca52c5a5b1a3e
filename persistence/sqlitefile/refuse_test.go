package sqlitefile_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/sqlitefile"
	"github.com/threadcast/threadcast/persistence/thread"
)

// refused expects that the file is refused with an error that is want and says each of the words.
func refused(t *testing.T, path string, want error, words ...string) {
	t.Helper()
	f, err := sqlitefile.Open(t.Context(), path, sqlitefile.Options{BusyTimeout: 50 * time.Millisecond})
	if err == nil {
		f.Close()
		t.Fatalf("Open(%s) gave no error, want %v", path, want)
	}
	if !errors.Is(err, want) {
		t.Fatalf("Open(%s): got %q, want %v", path, err, want)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Fatalf("Open(%s): %q does not say %q", path, err, w)
		}
	}
}

func TestRefusesPlaces(t *testing.T) {
	for _, name := range []string{
		"", ":memory:", "file::memory:", "file::memory:?cache=shared", "file:x.db?mode=memory", "postgres://host/db", "a\x00b",
	} {
		t.Run("not a file: "+name, func(t *testing.T) { refused(t, name, thread.ErrBadInput) })
	}
	t.Run("a directory that does not exist", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "missing")
		refused(t, filepath.Join(dir, "x.db"), fs.ErrNotExist, dir, "does not exist", "create it")
	})
	t.Run("a directory in place of the file", func(t *testing.T) {
		refused(t, t.TempDir(), thread.ErrBadInput, "not a regular file")
	})
	t.Run("a directory that cannot be written", func(t *testing.T) {
		dir, want := t.TempDir(), fs.ErrPermission
		if err := os.Chmod(dir, 0o500); err != nil {
			t.Fatal(err)
		}
		if os.Geteuid() == 0 { // whom no permission stops: but nobody makes files there
			dir, want = "/proc/self", fs.ErrNotExist
		}
		refused(t, filepath.Join(dir, "x.db"), want, "x.db", "directory has to be writable")
	})
}

func TestRefusesSecondProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	first := open(t, path)
	t.Run("by the same name", func(t *testing.T) {
		refused(t, path, thread.ErrUnavailable, path, "in use by another threadcast process (process ", "one node")
	})
	t.Run("by another name", func(t *testing.T) {
		link := filepath.Join(t.TempDir(), "link.db")
		if err := os.Symlink(path, link); err != nil {
			t.Fatal(err)
		}
		refused(t, link, thread.ErrUnavailable, "in use")
	})
	t.Run("not once the first has closed it", func(t *testing.T) {
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		open(t, path)
	})
	t.Run("nor after a refusal", func(t *testing.T) {
		text := filepath.Join(t.TempDir(), "text.db")
		write(t, text, []byte(strings.Repeat("no database ", 1000)))
		refused(t, text, thread.ErrCorrupt)
		write(t, text, nil)
		open(t, text)
	})
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestRefusesDamage(t *testing.T) {
	good := read(t, filled(t))
	scribbled := bytes.Clone(good)
	for i := len(good) / 2; i < len(good)/2+20000; i++ {
		scribbled[i] = 0xa5
	}
	cases := []struct {
		name string
		data []byte
		says string
	}{
		{"a text file", []byte("Dear diary,\n"), "not a SQLite database"},
		{"a longer text file", []byte(strings.Repeat("Dear diary,\n", 5000)), "not a SQLite database"},
		{"zeroes", make([]byte, 8192), "not a SQLite database"},
		{"cut within the header", good[:60], "ends within its header"},
		{"cut within the first page", good[:3000], "3000 bytes and should have"},
		{"cut at a page", good[:4096*10], "40960 bytes and should have"},
		{"short of its last byte", good[:len(good)-1], "should have"},
		{"scribbled over", scribbled, "damaged"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "bad.db")
			write(t, path, c.data)
			refused(t, path, thread.ErrCorrupt, path, c.says)
			if !bytes.Equal(read(t, path), c.data) {
				t.Fatal("the file was changed")
			}
		})
	}
	t.Run("emptied beside its write-ahead log", func(t *testing.T) {
		path := crashed(t)
		write(t, path, nil)
		before := read(t, path+"-wal")
		refused(t, path, thread.ErrCorrupt, "it is empty, but")
		if !bytes.Equal(read(t, path+"-wal"), before) {
			t.Fatal("the write-ahead log was changed")
		}
	})
}

// crashed makes a database as a process leaves it that was killed: what it wrote is in the write-ahead log.
func crashed(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "crashed.db")
	live := filepath.Join(t.TempDir(), "live.db")
	f := open(t, live)
	fill(t, f.Writer())
	write(t, path, read(t, live))
	write(t, path+"-wal", read(t, live+"-wal"))
	return path
}

func TestRecovers(t *testing.T) {
	t.Run("what a killed process wrote", func(t *testing.T) {
		if got := query(t, open(t, crashed(t)).Reader(), "SELECT count(*) FROM a"); got != "2000" {
			t.Fatalf("%s rows, want 2000", got)
		}
	})
	t.Run("all that is whole before a torn end", func(t *testing.T) {
		path := crashed(t)
		wal := read(t, path+"-wal")
		write(t, path+"-wal", append(wal, wal[32:5000]...))
		if got := query(t, open(t, path).Reader(), "SELECT count(*) FROM a"); got != "2000" {
			t.Fatalf("%s rows, want 2000", got)
		}
	})
	t.Run("the transactions before one that is torn", func(t *testing.T) {
		path := crashed(t)
		wal := read(t, path+"-wal")
		write(t, path+"-wal", wal[:len(wal)-2000])
		if got := query(t, open(t, path).Reader(), "SELECT count(*) FROM a"); got != "0" {
			t.Fatalf("%s rows, want 0: the table, without the transaction that filled it", got)
		}
	})
}

func TestRefusesLockedFile(t *testing.T) {
	cases := []struct{ name, params string }{
		{"new, with a rollback journal", "?_txlock=exclusive"},
		{"with a write-ahead log", "?_txlock=exclusive&_journal_mode=WAL"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "locked.db")
			other, err := sql.Open("sqlite", "file:"+path+c.params)
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			exec(t, other, "CREATE TABLE a (n)")
			tx, err := other.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			within(t, 5*time.Second, func(context.Context) {
				refused(t, path, thread.ErrUnavailable, path, "another program has locked the file", "start again")
			})
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
			open(t, path)
		})
	}
	t.Run("a context that is done opens nothing", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "x.db")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if f, err := sqlitefile.Open(ctx, path, sqlitefile.Options{}); !errors.Is(err, context.Canceled) {
			f.Close()
			t.Fatalf("got %v", err)
		}
		open(t, path)
	})
}
