package history_test

import (
	"testing"

	"github.com/threadcast/threadcast/persistence/history"
	"github.com/threadcast/threadcast/persistence/pgtest"
)

// A database keeps its name for all who open it, and no two have the same.
func TestDatabasesHaveNames(t *testing.T) {
	seen := map[string]bool{}
	name := func(h *history.History) string {
		t.Helper()
		name, err := h.Installation(t.Context())
		if err != nil || len(name) < 16 {
			t.Fatalf("the name is %q, %v", name, err)
		}
		seen[name] = true
		return name
	}
	for range 2 {
		h, _ := openHistory(t, history.Options{})
		if one, again := name(h), name(h); one != again {
			t.Errorf("a file has the names %q and %q", one, again)
		}
	}
	for range 2 {
		url := pgtest.Database(t)
		one, _, _ := openPostgres(t, url, history.Options{})
		two, _, _ := openPostgres(t, url, history.Options{})
		if name(one) != name(two) {
			t.Errorf("a Postgres database has another name for who opens it next")
		}
	}
	if len(seen) != 4 {
		t.Errorf("four databases have the names %v", seen)
	}
}
