// Package terminal is threadcast for people at a terminal: it follows a thread ([Tail]), asks an agent and shows its answer
// ([Ask]), lists threads ([Threads]) and stops runs ([Stop]).
//
// It stands at the end of the flow, where the browser stands too: a client of the HTTP API and of the socket, as
// docs/protocol.md describes them. Events come in through a follower, which reconnects and resumes by itself, and become
// lines on a screen, or JSON. Whatever a run or a user says is made inert before it is shown: see [Inert].
package terminal
