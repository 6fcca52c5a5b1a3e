// Package webtest is a client of the socket for tests: it dials a server over TCP or over an in-memory [Pipe], joins
// topics, pushes requests, and hands out what the server pushes, in order. A [Viewer] keeps what one reader of a
// thread has seen and refuses a gap, a repeat or a swap. It reads frames by itself and shares no code with package web,
// so that a mistake of the server is not made twice.
//
// The calls of one side of a conversation:
//
//	client, err := webtest.Dial(ctx, "http://127.0.0.1:8080", nil)
//	defer client.Close()
//	viewer := webtest.NewViewer("t1", nil)
//	err = viewer.Join(ctx, client)
//	reply, err := viewer.Channel().Push(ctx, "run", `{"messages":[]}`)
//	err = viewer.Until(ctx, webtest.Ended("run_1"))
package webtest
