package static

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPage(t *testing.T) {
	keep := &fstest.MapFile{}
	for name, tt := range map[string]struct {
		files fstest.MapFS
		built bool
	}{
		"not built when dist is empty but for its keeper": {fstest.MapFS{"dist/.gitkeep": keep}, false},
		"not built without dist":                          {fstest.MapFS{"src/index.html": keep}, false},
		"not built when index.html is a folder":           {fstest.MapFS{"dist/index.html/x": keep}, false},
		"built with index.html":                           {fstest.MapFS{"dist/index.html": {Data: []byte("hi")}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, built := page(tt.files)
			if built != tt.built {
				t.Errorf("built = %t, want %t", built, tt.built)
			}
			if !built {
				return
			}
			if text, err := fs.ReadFile(got, "index.html"); err != nil || string(text) != "hi" {
				t.Errorf("index.html at the root = %q, %v", text, err)
			}
		})
	}
}

func TestFSTellsWhatIsInDist(t *testing.T) {
	_, err := os.Stat("dist/index.html")
	files, built := FS()
	if built != (err == nil) {
		t.Fatalf("built = %t, but stat of dist/index.html says %v", built, err)
	}
	if built {
		checkAssets(t, files)
	}
	if _, err := fs.Stat(files, ".gitkeep"); err != nil {
		t.Errorf("the keeper of dist is gone, so a checkout would not compile: %v", err)
	}
}

var reference = regexp.MustCompile(`(?:src|href)="/([^"]+)"`)

// checkAssets checks that what index.html refers to is there, under a name that changes with its content.
func checkAssets(t *testing.T, files fs.FS) {
	t.Helper()
	index, err := fs.ReadFile(files, "index.html")
	if err != nil {
		t.Fatal(err)
	}
	found := reference.FindAllSubmatch(index, -1)
	if len(found) < 2 {
		t.Errorf("index.html refers to %d files, want a script and a style sheet at least", len(found))
	}
	hashed := regexp.MustCompile(`^assets/[\w.-]+-[\w-]{8}\.\w+$`)
	for _, m := range found {
		name := string(m[1])
		if info, err := fs.Stat(files, name); err != nil || info.Size() == 0 {
			t.Errorf("index.html refers to %s: %v", name, err)
		}
		if !hashed.MatchString(name) {
			t.Errorf("%s has no hash in its name", name)
		}
	}
	if strings.Contains(string(index), "<script>") {
		t.Error("index.html holds a script of its own, which a strict content security policy forbids")
	}
}

func TestNotBuiltSaysWhatToDo(t *testing.T) {
	for _, want := range []string{"has not been built", "make static", "make run"} {
		if !strings.Contains(NotBuilt, want) {
			t.Errorf("NotBuilt does not say %q", want)
		}
	}
}
