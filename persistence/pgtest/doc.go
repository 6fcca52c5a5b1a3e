// Package pgtest gives tests a private Postgres: a server of their own, made from the binaries that the machine has, and
// a fresh database for each test. It stands beside historytest, which says what a history has to do; pgtest is where
// the real engine comes from, and where it is stopped, killed and frozen.
//
// The tests of one binary share a server, which [Database] starts when it is first asked and [Main] ends. A test that
// harms its server gets one for itself from [Start]. Servers listen on a socket file that only their owner reaches, and
// are ended, with their files, when the tests end in whatever way.
//
// With -short, and when the variable THREADCAST_WITHOUT names postgres, tests that ask for a server are left out.
// Without either, a machine that has no Postgres fails them.
package pgtest
