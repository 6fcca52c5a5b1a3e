package redistest

import "syscall"

// withParent has a process end with its parent, even if that is killed.
func withParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
