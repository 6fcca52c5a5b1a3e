// Package loadtest drives many viewers of many threads against one or more nodes, and checks what each of them sees: every
// event of every run exactly once, in order, without a gap, the same bytes as all others and as the API has them. Some
// viewers cut their connections and come back at random, on other nodes; some runs are stopped.
//
// It stands outside of the flow: it is a client of the HTTP API and of the socket, as docs/protocol.md describes them, and
// knows of threadcast only the frames and the cursors. The command "threadcast loadtest" is made of it, and so are
// the tests of the binary. [Run] does all of it, by means of package client.
package loadtest
