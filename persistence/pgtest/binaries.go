//go:build unix

package pgtest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// errMissing says what to do on a machine that has no Postgres.
var errMissing = errors.New("these tests need a Postgres server, and neither PATH nor /usr/lib/postgresql/*/bin has " +
	"initdb and postgres: install them (apt-get install postgresql), or leave the tests out (-short, or THREADCAST_WITHOUT=postgres)")

// places are where packages put Postgres without putting it in PATH.
var places = []string{
	"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin", "/usr/local/pgsql/bin",
}

// find returns the folder of a Postgres server's programs: the one in PATH, or else the newest that is installed.
func find(path string) (string, error) {
	for _, dir := range filepath.SplitList(path) {
		if whole(dir) {
			return dir, nil
		}
	}
	for _, pattern := range places {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return "", err
		}
		slices.SortFunc(found, func(a, b string) int { return cmp.Compare(version(b), version(a)) })
		for _, dir := range found {
			if whole(dir) {
				return dir, nil
			}
		}
	}
	return "", errMissing
}

// whole tells whether dir has the programs of a server.
func whole(dir string) bool {
	for _, name := range []string{"initdb", "postgres"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode()&0o111 == 0 {
			return false
		}
	}
	return filepath.IsAbs(dir)
}

// version is the number in the name of the folder that a folder of programs is in; 0 if there is none.
func version(dir string) float64 {
	name := filepath.Base(filepath.Dir(dir))
	n, err := strconv.ParseFloat(strings.TrimLeft(name, "abcdefghijklmnopqrstuvwxyz-@"), 64)
	if err != nil {
		return 0
	}
	return n
}

// servant is who runs the server if we are root, as whom Postgres does not run; nil otherwise.
func servant() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(uidErr, gidErr); err != nil {
			return nil, fmt.Errorf("read the ids of user %s: %w", name, err)
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("Postgres does not run as root, and there is no user postgres or nobody to run it as")
}

// speaksICU tells whether initdb can make databases that sort as people do.
func speaksICU(bin string) bool {
	text, err := exec.Command(filepath.Join(bin, "initdb"), "--help").Output()
	return err == nil && bytes.Contains(text, []byte("--icu-locale"))
}
