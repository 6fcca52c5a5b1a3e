// Package agenttest scripts agents for tests. It stands where an agent stands, at the beginning of the flow: what
// is under test is what comes after it.
//
// A script is a list of steps: emit this, wait for the test, ignore cancellation, panic. [New] plays it as a
// [runner.Agent] in the same process, [NewServer] as an agent that speaks AG-UI over HTTP. [ParseSteps] and
// [ParseCase] read scripts from the replay cases. A test follows a script by its marks and lets it go on by
// its gates; see [Signals].
package agenttest
