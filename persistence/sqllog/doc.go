// Package sqllog is the live log and its leases in a SQLite file: the log of embedded mode.
//
// It stands between the runner, which appends, and the hub, which tails. Everything that writes goes through one
// goroutine, the committer, which takes all that is waiting and commits it in one transaction; while that is under
// way the next group gathers. What Append has acknowledged survives the death of the process. The same process keeps an
// index of what is committed in memory, so that appends and leases are decided without reading, and hands the entries
// of each commit to the tails of their threads; only who is behind reads from the file.
//
// A file belongs to one process at a time, which package sqlitefile sees to. So the leases that are in it when it
// is opened are those of a process that is gone: they count as expired.
package sqllog
