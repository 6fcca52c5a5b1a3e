// Package wire reads and writes the frames of the socket: Phoenix Channels v2 as phoenix.js speaks it (vsn 2.0.0), with the
// pushes and errors of threadcast, and server-sent events. It is bytes in, bytes out: no socket, no state. The frames under
// testdata are the contract that docs/protocol.md describes.
package wire
