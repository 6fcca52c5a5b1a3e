package main_test

import (
	"os/exec"
	"syscall"
)

// endWithParent makes a process end when the tests do, however they end.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
