// Package logtest is the conformance suite of live logs: what hub.Log, runner.Log, runner.Leaser and runner.Owners
// promise, as tests that every driver passes.
//
// A driver's conformance_test.go calls [Run], and [RunDurable] if it outlives its process. A fault that is found in
// one driver becomes a case here, so that it is tested in all of them. [Faulty] makes a log fail on purpose, for the
// tests of what stands above it.
package logtest
