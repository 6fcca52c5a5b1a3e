package web

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/web/copilotkit"
	"github.com/threadcast/threadcast/web/wire"
)

// goldenReply is an answer, and to what.
type goldenReply struct {
	to       wire.Frame
	response any
}

// goldenThreads are the threads of the golden files.
func goldenThreads() (one, two thread.Thread) {
	morning := time.Date(2026, 8, 1, 9, 30, 0, 0, time.UTC)
	one = thread.Thread{
		ID: "t1", Title: "Hello", Owner: "alice", Agent: "demo", Created: morning, Activity: morning.Add(time.Minute), Revision: 7,
		Latest: &thread.Run{ID: "r4", Number: 4, Agent: "demo"},
	}
	two = thread.Thread{
		ID: "t2", Title: "May I?", Name: "Leave", Created: morning.Add(-30 * time.Minute), Revision: 3,
		Activity: morning.Add(-30*time.Minute + 4*time.Second),
		Latest:   &thread.Run{ID: "r1", Agent: "demo", Ended: morning, End: thread.End{Outcome: thread.OutcomeWaiting}},
	}
	return one, two
}

// named and archived are the first thread after it was renamed, and then archived.
func named(t thread.Thread) thread.Thread {
	t.Name, t.Revision = "Plans", 8
	return t
}

func archived(t thread.Thread) thread.Thread {
	t = named(t)
	t.Archived, t.Revision = t.Activity, 9
	return t
}

// goldenLists are the answers on the topic of the caller's threads.
func goldenLists() map[string]goldenReply {
	one, two := goldenThreads()
	next := "MTc4NTU3NjY2MDAwMDp0MQ"
	request := func(ref string) wire.Frame { return wire.Frame{JoinRef: "1", Ref: ref, Topic: topicUser} }
	changed := func(t thread.Thread) any { return map[string]threadView{"thread": viewOf(t)} }
	return map[string]goldenReply{
		"reply_join_user": {request("1"), threadPage{Threads: []threadView{viewOf(one), viewOf(two)}, Next: &next}},
		"reply_list":      {request("2"), threadPage{Threads: []threadView{}}},
		"reply_rename":    {request("3"), changed(named(one))},
		"reply_archive":   {request("4"), changed(archived(one))},
		"reply_delete":    {request("5"), struct{}{}},
	}
}

func TestListsAreWrittenAsInTheGoldenFiles(t *testing.T) {
	one, _ := goldenThreads()
	next := "MTc4NTU3NjY2MDAwMDp0MQ"
	page, err := json.Marshal(threadPage{Threads: []threadView{viewOf(one)}, Next: &next})
	if err != nil {
		t.Fatal(err)
	}
	chats, err := json.Marshal(copilotkit.NewThreads([]thread.Thread{named(one)}, "MNK4", ""))
	if err != nil {
		t.Fatal(err)
	}
	push := func(joinRef, topic, event string, payload []byte) string {
		return string(wire.AppendPush(nil, joinRef, topic, event, payload))
	}
	native := func(what thread.Happening, t thread.Thread) string {
		return push("1", topicUser, wire.EventListChange, changeView(thread.Change{What: what, Thread: t}))
	}
	at := one.Activity.Add(2 * time.Second)
	meta := func(what thread.Happening, t thread.Thread) string {
		return push("3", "user_meta:MNK4", copilotkit.PushMetadata, copilotkit.Metadata(thread.Change{What: what, Thread: t, At: at}))
	}
	for name, got := range map[string]string{
		"http/threads":                               string(page),
		"server/thread_changed":                      native(thread.Renamed, named(one)),
		"server/thread_changed_deleted":              native(thread.Deleted, thread.Thread{ID: "t1", Revision: 10}),
		"copilotkit_threads/threads":                 string(chats),
		"copilotkit_threads/thread_metadata":         meta(thread.Renamed, named(one)),
		"copilotkit_threads/thread_metadata_deleted": meta(thread.Deleted, thread.Thread{ID: "t1", Owner: "alice"}),
		"copilotkit_threads/thread_run_activity": push("3", "user_meta:MNK4", copilotkit.PushRunActivity,
			copilotkit.RunActivity(thread.Change{What: thread.Running, Thread: one})),
	} {
		if want := golden(t, name); got != want {
			t.Errorf("%s is written as\n%s\nwant\n%s", name, got, want)
		}
	}
	f, err := wire.Parse([]byte(golden(t, "copilotkit_threads/join_user_meta")))
	if err != nil || f.Topic != topicMetadata+"MNK4" || f.Event != wire.EventJoin {
		t.Errorf("the join is read as %+v, %v", f, err)
	}
	asked, err := parseFields([]byte(golden(t, "http/thread_edit")))
	if err != nil {
		t.Fatal(err)
	}
	if edit, err := asked.edit(); err != nil || edit.Name == nil || *edit.Name != "Plans" || edit.Archived == nil || *edit.Archived {
		t.Errorf("the edit is read as %+v, %v", edit, err)
	}
}
