package main

import (
	"errors"
	"go/build"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/threadcast/threadcast/"

// allowed says which packages of threadcast a package may import; the longest prefix of its folder applies. A package may
// always import below its own prefix. Test files, and the packages that are only for tests, are not bound.
var allowed = []struct {
	folder string
	may    []string
	why    string
}{
	{"persistence/thread", nil, "the vocabulary lies at the bottom, so that everything can share it"},
	{"persistence/history", []string{"persistence/thread"}, "a store knows neither who writes nor who reads"},
	{"persistence/memlog", []string{"persistence/thread"}, "a driver knows nothing of what stands on it"},
	{"persistence/sqllog", []string{"persistence/thread"}, "a driver knows nothing of what stands on it"},
	{"persistence/redislog", []string{"persistence/thread"}, "a driver knows nothing of what stands on it"},
	{"persistence/sqlitefile", []string{"persistence/thread"}, "a driver knows nothing of what stands on it"},
	{"persistence/postgres", []string{"persistence/thread"}, "a driver knows nothing of what stands on it"},
	{"runner/agui", nil, "the protocol is pure: anybody may use it"},
	{"runner/agent", []string{"runner"}, "an agent sees only the port it implements"},
	{"runner", []string{"runner/agui", "persistence/thread"}, "runner and hub meet only in the vocabulary"},
	{"hub", []string{"persistence/thread"}, "the hub carries bytes: it knows neither AG-UI nor the runner"},
	{"web/wire", nil, "frames are bytes in, bytes out"},
	{"web/copilotkit", []string{"runner/agui", "persistence/thread"}, "wire forms are bytes in, bytes out"},
	{"web", []string{"hub", "runner/agui", "persistence/thread"}, "the runner is reached through web's own interface"},
	{"static", nil, "the page is files"},
	{"cmd/threadcast/loadtest", []string{"web/wire", "persistence/thread"}, "a client knows nothing of a server but its frames"},
	{"cmd", []string{""}, "the one place that sees everything"},
	{"docs/examples", []string{""}, "a program of somebody else sees what is public"},
}

// forTests are packages that hold only what tests use.
var forTests = []string{"persistence/logtest", "persistence/historytest", "persistence/losslesstest", "persistence/pgtest", "runner/agenttest", "web/webtest"}

func TestImportsGoOneWay(t *testing.T) {
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		folder, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if name := d.Name(); folder != "." && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "testdata") {
			return filepath.SkipDir
		}
		pkg, err := build.ImportDir(path, 0)
		var none *build.NoGoError
		switch {
		case errors.As(err, &none), slices.Contains(forTests, filepath.ToSlash(folder)):
			return nil
		case err != nil:
			return err
		}
		check(t, filepath.ToSlash(folder), pkg.Imports)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func check(t *testing.T, folder string, imports []string) {
	t.Helper()
	rule := -1
	for i, r := range allowed {
		if within(folder, r.folder) && (rule < 0 || len(r.folder) > len(allowed[rule].folder)) {
			rule = i
		}
	}
	if rule < 0 {
		t.Errorf("%s: no rule says what it may import", folder)
		return
	}
	r := allowed[rule]
	for _, path := range imports {
		to, ours := strings.CutPrefix(path, module)
		if !ours || within(to, r.folder) {
			continue
		}
		if !slices.ContainsFunc(r.may, func(m string) bool { return m == "" || within(to, m) }) {
			t.Errorf("%s imports %s: %s", folder, to, r.why)
		}
	}
}

func within(folder, prefix string) bool {
	return folder == prefix || strings.HasPrefix(folder, prefix+"/")
}
