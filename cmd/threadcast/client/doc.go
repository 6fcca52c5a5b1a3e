// Package client speaks to running nodes as any client does: requests of the HTTP API, repeated where that is worth it, and
// sockets that have joined a thread. [Next] holds what comes on a socket against what came before.
//
// It stands outside of the flow, on the other side of package web, and knows of threadcast only the frames and the cursors
// (docs/protocol.md). Package loadtest drives many viewers with it, and package terminal shows one thread to a person.
package client
