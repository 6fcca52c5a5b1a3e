// Package copilotkit reads and writes the wire forms of CopilotKit's clients, which speak to threadcast as they speak to their
// own runtime: the bodies of its routes, and the payloads on its sockets. It is bytes in, bytes out: no socket, no state.
// The handlers stand in package web.
package copilotkit
