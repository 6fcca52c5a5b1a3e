package main_test

import (
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// Ports about what is stored.

func persistAcrossInstances(o *origin) {
	o.runToArray("persistence", "run1", customAgent(
		`{"type":"TEXT_MESSAGE_START","messageId":"msg1","role":"assistant"}`,
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"msg1","delta":"Persisted"}`,
		`{"type":"TEXT_MESSAGE_END","messageId":"msg1"}`,
		`{"type":"RUN_FINISHED","threadId":"{thread}","runId":"{run}"}`))
	events := o.connectTo(o.again(), "persistence") // a runner, a hub and a live log that know nothing
	contents := ofType(events, "TEXT_MESSAGE_CONTENT")
	if len(contents) != 1 || contents[0].Delta != "Persisted" {
		o.Errorf("the events are %s", typesOf(events))
	}
	o.legal(events)
}

func storeCompactedEvents(o *origin) {
	o.runToArray("compaction", "run1", customAgent(
		`{"type":"TEXT_MESSAGE_START","messageId":"msg-compact","role":"assistant"}`,
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"msg-compact","delta":"Hello"}`,
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"msg-compact","delta":" "}`,
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"msg-compact","delta":"World"}`,
		`{"type":"TEXT_MESSAGE_END","messageId":"msg-compact"}`,
		`{"type":"RUN_FINISHED","threadId":"{thread}","runId":"{run}"}`))
	runs := o.stored("compaction")
	if len(runs) != 1 {
		o.Fatalf("%d runs are stored", len(runs))
	}
	contents := ofType(o.eventsOf(runs[0]), "TEXT_MESSAGE_CONTENT")
	if len(contents) != 1 || contents[0].Delta != "Hello World" {
		o.Errorf("the contents are %+v", contents)
	}
}

func storeNoDuplicateMessageIDs(o *origin) {
	agent := customAgent(`{"type":"RUN_FINISHED","threadId":"{thread}","runId":"{run}"}`)
	message := `{"id":"shared-msg","role":"user","content":"First message"}`
	o.runToArray("nodupe", "run1", agent, message)
	o.runToArray("nodupe", "run2", agent, message)
	runs := o.stored("nodupe")
	if len(runs) != 2 {
		o.Fatalf("%d runs are stored", len(runs))
	}
	expect(o, "stored with the first run", 1, o.input(o.eventsOf(runs[0]), "user"))
	expect(o, "stored with the second run", 0, o.input(o.eventsOf(runs[1]), "user"))
	expect(o, "shown", 1, o.input(o.connect("nodupe"), "user"))
}

func handleDatabaseInitialization(o *origin) {
	for _, table := range []string{"agent_runs", "run_state", "schema_version"} {
		expect(o, "there is a table "+table, true, o.past.rows.Migrator().HasTable(table))
	}
	var versions []int
	if err := o.past.rows.Table("schema_version").Order("version").Pluck("version", &versions).Error; err != nil {
		o.Fatal(err)
	}
	for i, version := range versions { // the origin's only version was 1
		expect(o, "version", i+1, version)
	}
	if len(versions) == 0 {
		o.Error("no version is noted")
	}
}

// The origin's stream had a TTL in Redis. Here the live log keeps a finished run for the retention, whatever kind of log
// it is; after that the run is shown from the database.
func handleStreamExpiry(o *origin) {
	long := o.runToArray("expiry", "run1", mockAgent())
	expect(o, "entries right after the run", len(long)+1, len(o.entries("expiry")))
	brief := o.config()
	brief.Retention = 10 * time.Millisecond
	soon := &origin{T: o.T, stack: o.beside(brief), form: o.form, cast: o.cast}
	short := soon.runToArray("expiry-2", "run2", mockAgent())
	eventually(o, patience, "the run has left the live log", func() bool { return len(o.entries("expiry-2")) == 0 })
	expect(o, "events afterwards", typesOf(short), typesOf(o.connect("expiry-2")))
	expect(o, "entries of the other", len(long)+1, len(o.entries("expiry")))
	head, err := o.log.Head(o.Context(), "expiry-2")
	if err != nil || head != (thread.Cursor{}) {
		o.Errorf("the head of the live log is %s: %v", head, err)
	}
}
