package historytest

import (
	"strings"

	"github.com/threadcast/threadcast/persistence/thread"
)

// nasty are JSON texts that a store may be tempted to change, or a database to refuse (F116, F118).
func nasty() []string {
	return []string{
		`{"type":"TEXT_MESSAGE_CONTENT","delta":"a\u0000b\u0001c\u007fd\uffffe"}`,
		`{"delta":"lone \ud800 end","other":"\udc00\ud800"}`,
		`{"delta":"{\"p\":\"C:\\u0000\\\\\\\"]}\"}"}`,
		`{"big":9223372036854775807,"bigger":123456789012345678901234567890,"neg":-9007199254740993,"zero":-0,"f":1.0,"e":1e400}`,
		`{"x":0.1000000000000000055511151231257827}`,
		`{"zeta":1,"alpha":2,"zeta":3,"":4,"":5}`,
		`{"html":"</script>&<!-- -->","u":"\u00e9\/"}`,
		"{\"raw\":\"\u2028\u2029\u007f\u0085\ufffd\ufeff\U0010ffff e\u0301\u00e9 \u202e\"}",
		`{"null":null,"false":false,"empty":"","list":[],"object":{},"nested":[[[[]],{"]":"["}]]}`,
		"{\n  \"pretty\": [\n\t1,\r\n\t2\n  ]\n}",
		" \t\r\n{\"space\" : \"around\"} \n",
		`{}`, `[]`, `""`, `null`, `true`, `0`, `[1,1,{"a":2}]`, `"]"`, `"\""`, `"\\"`, `"\\\""`,
		`{"long":"` + strings.Repeat("0123456789abcdef", 1<<16) + `"}`,
		strings.Repeat("[", 2000) + strings.Repeat("]", 2000),
	}
}

func testLossless(b *bench) {
	b.run("events come out byte for byte", func(b *bench) {
		want := nasty()
		run := finished(b.start(newRun("t", "r1")), want...)
		run.Events[0].First, run.Events[0].Last = 1, 1<<63-1
		b.save(run)
		got := b.replay("t")[0]
		b.same("events", want, texts(got))
		b.same("ranges", run.Events[0].Last, got.Events[0].Last)
	})
	b.run("input and pending come out byte for byte", func(b *bench) {
		for i, text := range nasty() {
			run := newRun(thread.ID(name("t", i)), "r1")
			run.Input = []byte(text)
			run = finished(b.start(run))
			run.End.Outcome, run.Pending, run.Usage = thread.OutcomeWaiting, []byte(text), []byte(text)
			b.save(run)
			b.same("input", text, string(b.find(run.Thread, "r1").Input))
			b.same("pending of the run", text, string(b.find(run.Thread, "r1").Pending))
			b.same("usage", text, string(b.find(run.Thread, "r1").Usage))
			b.same("pending of the thread", text, string(b.thread(run.Thread).Pending))
		}
	})
	b.run("other texts come out as they went in", func(b *bench) {
		long := strings.Repeat("long ", 2000)
		for i, text := range []string{"a\x00b", "\x00", "\xff\xfe", `"quoted"`, `"`, `\x00`, "e\u0301", "\u2028", "'; --", long, " "} {
			run := newRun(thread.ID(name("t", i)), "r1")
			run.Agent, run.Parent, run.Owner, run.Title = text, text, text, text
			run = finished(b.start(run))
			run.End = thread.End{Outcome: thread.OutcomeFailed, Code: text, Message: text, By: text}
			b.save(run)
			run.Events, run.Title = nil, ""
			b.same("run", run, b.find(run.Thread, "r1"))
			b.same("title", text, b.thread(run.Thread).Title)
			b.same("run of the thread", &run, b.thread(run.Thread).Latest)
		}
	})
	b.run("20,000 events are one run", func(b *bench) {
		events := make([]string, 20_000)
		for i := range events {
			events[i] = `{"type":"CUSTOM","name":"` + name("n", i) + `","value":{"text":"some text \u0000 \"quoted\""}}`
		}
		b.complete(newRun("t", "r1"), events...)
		b.same("events", events, texts(b.replay("t")[0]))
	})
}
