//go:build unix

package pgtest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestBinariesThatAreFound(t *testing.T) {
	install := func(t *testing.T, folder string, names ...string) string {
		t.Helper()
		dir := filepath.Join(t.TempDir(), folder)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	before := places
	t.Cleanup(func() { places = before })
	places = nil
	t.Run("in PATH", func(t *testing.T) {
		client, server := install(t, "a", "psql", "initdb"), install(t, "b", "initdb", "postgres")
		if got, err := find(client + ":" + server); err != nil || got != server {
			t.Errorf("found %q, %v", got, err)
		}
	})
	t.Run("the newest of a package", func(t *testing.T) {
		root := t.TempDir()
		for _, v := range []string{"9.6", "13", "17"} {
			dir := filepath.Join(root, v, "bin")
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"initdb", "postgres"} {
				if err := os.WriteFile(filepath.Join(dir, name), nil, 0o755); err != nil {
					t.Fatal(err)
				}
			}
		}
		places = []string{filepath.Join(root, "*", "bin")}
		if got, err := find("/does/not/exist"); err != nil || got != filepath.Join(root, "17", "bin") {
			t.Errorf("found %q, %v", got, err)
		}
		places = nil
	})
	t.Run("nowhere", func(t *testing.T) {
		if _, err := find("/does/not/exist"); !errors.Is(err, errMissing) {
			t.Errorf("error is %v", err)
		}
	})
}

// skipper notes that a test is left out.
type skipper struct {
	testing.TB
	skipped bool
}

func (s *skipper) Helper()     {}
func (s *skipper) Skip(...any) { s.skipped = true }

func TestWhatIsLeftOut(t *testing.T) {
	for without, want := range map[string]bool{
		"": testing.Short(), "redis": testing.Short(), "postgres": true, "redis,postgres": true, "chromium postgres": true,
	} {
		t.Setenv("THREADCAST_WITHOUT", without)
		s := &skipper{TB: t}
		if need(s); s.skipped != want {
			t.Errorf("without %q: left out is %t, want %t", without, s.skipped, want)
		}
	}
}
