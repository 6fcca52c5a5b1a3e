// Package agent holds the agents that threadcast brings along. It stands at the very beginning of the flow:
// an agent produces the events of a run, and package runner records them.
//
// [AGUI] asks an agent that speaks AG-UI over HTTP and server-sent events. [OpenAI] asks a language model over the chat
// completions API, and makes the events itself. [Demo] is built in and needs nothing; it answers, calls a tool, shares
// state, asks for approval and fails on request, and it makes load for measurements. All are [runner.Agent], keep no
// state between runs, and start no goroutine of their own.
package agent
