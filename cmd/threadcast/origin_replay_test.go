package main_test

import "sync"

// Ports about what connections see.

func allowLateReaders(o *origin) {
	run := o.runToArray("t4", "run-retention", mockAgent())
	events := o.connect("t4")
	expect(o, "events", typesOf(run), typesOf(events))
	expect(o, "text messages", 1, len(ofType(events, "TEXT_MESSAGE_START")))
	o.legal(events)
}

func connectWithNoActiveRuns(o *origin) {
	expect(o, "events", 0, len(o.connect("t5")))
}

func connectDuringActiveRun(o *origin) {
	slow := slowAgent()
	o.run("t6", "run-active", slow)
	<-slow.Mark("begun")
	connected := make(chan []originEvent, 1)
	go func() { connected <- o.connect("t6") }()
	eventually(o, patience, "somebody watches the thread", func() bool { return o.watched() > 0 })
	slow.Release("finish")
	events := await(o, connected, patience, "the connection ends with the run")
	expect(o, "events", "RUN_STARTED RUN_FINISHED", typesOf(events))
}

func handleInputMessages(o *origin) {
	run := o.runToArray("t9", "run-messages", mockAgent(), `{"id":"user-msg-1","role":"user","content":"Hello"}`)
	for _, e := range ofType(run, "TEXT_MESSAGE_START") {
		if e.Role == "user" {
			o.Errorf("the run emitted an input message: %s", e.raw)
		}
	}
	events := o.connect("t9")
	expect(o, "user messages", 1, o.input(events, "user"))
	expect(o, "first event", "RUN_STARTED", events[0].Type)
	o.legal(events)
}

func handleConcurrentConnections(o *origin) {
	slow := slowAgent()
	acc := o.run("concurrent", "run1", slow)
	<-slow.Mark("begun")
	var all sync.WaitGroup
	seen := make([]string, 3)
	for i := range seen {
		all.Go(func() { seen[i] = typesOf(o.connect("concurrent")) })
	}
	eventually(o, patience, "somebody watches the thread", func() bool { return o.watched() > 0 })
	slow.Release("finish")
	want := typesOf(o.toArray("concurrent", acc))
	all.Wait()
	expect(o, "events of the connections", []string{want, want, want}, seen)
}

// Row "The conversion keeps only text, calls and results": all five have such a form here, and come in order.
func handleAllMessageTypes(o *origin) {
	o.runToArray("alltypes", "run1", customAgent(`{"type":"RUN_FINISHED","threadId":"{thread}","runId":"{run}"}`),
		`{"id":"user-1","role":"user","content":"User message"}`,
		`{"id":"assistant-1","role":"assistant","content":"Assistant message"}`,
		`{"id":"system-1","role":"system","content":"System message"}`,
		`{"id":"developer-1","role":"developer","content":"Developer message"}`,
		`{"id":"tool-1","role":"tool","content":"Tool result","toolCallId":"call-1"}`)
	events := o.connect("alltypes")
	for _, role := range []string{"user", "assistant", "system", "developer", "tool"} {
		expect(o, role+" messages", 1, o.input(events, role))
	}
	if o.form.events {
		expect(o, "results", 1, len(ofType(events, "TOOL_CALL_RESULT")))
	}
	o.legal(events)
}

func handleToolCalls(o *origin) {
	messages := []string{
		`{"id":"assistant-msg","role":"assistant","content":"Let me help","toolCalls":[{"id":"tool-call-1","type":"function",` +
			`"function":{"name":"calculator","arguments":"{\"a\": 1, \"b\": 2}"}}]}`,
		`{"id":"tool-result-1","role":"tool","content":"3","toolCallId":"tool-call-1"}`,
	}
	finish := `{"type":"RUN_FINISHED","threadId":"{thread}","runId":"{run}"}`
	o.runToArray("tools", "run1", customAgent(finish), messages...)
	events := o.connect("tools")
	o.legal(events)
	if !o.form.events { // Row "Input messages become events": the input carries them as they were sent.
		var input []string
		for _, m := range events[0].Input.Messages {
			input = append(input, string(m))
		}
		expect(o, "input", messages, input)
		return
	}
	var starts, args, ends, results = ofType(events, "TOOL_CALL_START"), ofType(events, "TOOL_CALL_ARGS"),
		ofType(events, "TOOL_CALL_END"), ofType(events, "TOOL_CALL_RESULT")
	if len(starts) != 1 || len(args) != 1 || len(ends) != 1 || len(results) != 1 {
		o.Fatalf("the events are %s", typesOf(events))
	}
	for _, e := range []originEvent{starts[0], args[0], ends[0], results[0]} {
		expect(o, "id of the call", "tool-call-1", e.ToolCallID)
	}
	expect(o, "name", "calculator", starts[0].ToolCallName)
	expect(o, "holder", "assistant-msg", starts[0].ParentMessageID)
	expect(o, "arguments", `{"a": 1, "b": 2}`, args[0].Delta)
	expect(o, "result", "3", results[0].Content)
	// Row "Only messages with unseen ids are stored": the origin missed holders of calls, and stored them in every run (O17).
	o.runToArray("tools", "run2", customAgent(finish), messages...)
	expect(o, "calls after the next run", 1, len(ofType(o.connect("tools"), "TOOL_CALL_START")))
}
