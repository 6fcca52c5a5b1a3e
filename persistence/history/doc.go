// Package history keeps runs in SQL: each run is noted when it is accepted and gets its compacted events when
// it is finished. It stands at the end of a run's way (agent, live log, history) and at the beginning of a
// replay: what has left the live log is always found here.
//
// The same models, statements and migrations serve SQLite and Postgres. Every write that concerns a thread is
// one transaction that first locks the thread's row, so that writers of one thread follow each other and
// writers of different threads do not meet. Reads take no lock. A transaction that another one got in the way of, by a
// deadlock say, is run again. On Postgres every statement has a deadline besides.
//
// Texts are kept without loss. The events of a run are one JSON text that holds the bytes of each event as
// they came, with a checksum; other texts are written as they are unless a database would refuse them (see
// [Text]). Points in time are kept to the millisecond.
package history
