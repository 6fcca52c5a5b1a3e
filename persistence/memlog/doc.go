// Package memlog is the live log and its leases in memory.
//
// It stands between the runner, which appends, and the hub, which tails, for a process that wants no file:
// what it holds is gone when the process ends. It is also the log that fast tests run on. It starts no goroutine
// and keeps time with package time alone, so that it works inside a testing/synctest bubble.
package memlog
