// Package web serves threadcast to the world: the socket (Phoenix Channels v2), the HTTP API, health, and the page.
//
// A socket is a session: its read loop dispatches frames, each joined topic has one goroutine that moves batches from
// its hub subscription to the socket, and requests of one topic are answered one after the other, off the read
// loop. What the runner and the history do for it is declared here as small interfaces; errors become codes of the wire
// in one table, errors.go.
package web
