package main_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// usage is what a process holds, read from /proc.
type usage struct {
	rss     int // bytes of resident memory
	peak    int // the most that rss has been
	threads int
	fds     int // open file descriptors
}

// usage reads what the node holds now. It needs Linux.
func (n *node) usage() usage {
	n.t.Helper()
	proc := filepath.Join("/proc", strconv.Itoa(n.cmd.Process.Pid))
	status, err := os.ReadFile(filepath.Join(proc, "status"))
	if err != nil {
		n.t.Fatalf("read what the node holds: %v", err)
	}
	open, err := os.ReadDir(filepath.Join(proc, "fd"))
	if err != nil {
		n.t.Fatalf("read what the node holds: %v", err)
	}
	u := usage{fds: len(open)}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		number, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
		switch name {
		case "VmRSS":
			u.rss = number << 10
		case "VmHWM":
			u.peak = number << 10
		case "Threads":
			u.threads = number
		}
	}
	return u
}
