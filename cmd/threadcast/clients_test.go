package main_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/threadcast/threadcast/persistence/pgtest"
	"github.com/threadcast/threadcast/persistence/redislog/redistest"
)

// statement is one of the checklist of the protocol that CopilotKit's client speaks (issue 5, Shows a). The clients try it in
// e2e/bench, in the function of its number.
type statement struct {
	number string
	words  string
	short  bool // tried without the tag integration, too
}

// together are statements that do not disturb one another.
var together = []statement{
	{"1", "the handshake at <path>/websocket and <path>//websocket succeeds", true},
	{"2", "phx_join is answered with the same join_ref and ref", true},
	{"3", "a heartbeat is answered on topic phoenix with the same ref", true},
	{"4", "phx_leave is answered ok, also for a topic not joined", true},
	{"5", "a second phx_join for a joined topic replaces the first; frames for the old join_ref stop", true},
	{"6", "a push on a topic not joined is answered error, unmatched topic", true},
	{"7", "pushes carry the member's current join_ref; nothing is sent with a stale one", true},
	{"9", "no path accepts a handshake and then closes; refusals are non-101", true},
	{"11", "with an auth subprotocol offered, the answer selects phoenix", true},
	{"12", "malformed frames do not kill other connections", true},
	{"13", "GET /info makes the mode intelligence and registers one agent per key", true},
	{"14", "GET /info without mode gives SSE mode", true},
	{"15", "POST {runtimeUrl} with method info works when REST /info is disabled", true},
	{"17", "POST /run returns the four fields; runAgent resolves with the assistant message and no error", true},
	{"18", "events produced before the join are delivered by the join", true},
	{"19", "every ag_ui_event has a metadata.cpki_event_id", true},
	{"20", "events of another run never reach a run-mode member", true},
	{"21", "RUN_FINISHED carries ids and follows closed messages, tool calls and steps; the client leaves by itself", true},
	{"22", "second run on a busy thread is 409, client code agent_thread_locked; the first run is undisturbed", true},
	{"23", "RUN_ERROR after 200 deltas: the client keeps the text and reports the message", true},
	{"24", "a join with an expired or foreign token is refused at the handshake", true},
	{"25", "resume in the body reaches the agent", true},
	{"26", "unknown thread: 204, connectAgent resolves, no error", true},
	{"27", "idle thread: full history, then replay_complete and stream_idle; user messages are restored", true},
	{"28", "second connect of the same agent sends the last cursor and receives no event twice", true},
	{"29", "active run: history, replay_complete, live events, and stream_idle only after the run ended", true},
	{"30", "/connect during a run returns runId; stopAgent then stops the run", true},
	{"31", "history with a failed run raises no agent_run_error_event", true},
	{"32", "an unknown cursor yields a snapshot, not an error and not duplicates", true},
	{"33", "stop_run followed at once by a closed socket stops the run; closing events are stored; lock free", true},
	{"34", "IntelligenceAgent.abortRun receives the closing events before the reply", true},
	{"35", "stop_run with another run_id stops nothing", true},
	{"37", "socket killed with unacknowledged frames: handshake refused, /connect with the cursor, run completes with exact text", false},
	{"39", "gateway down for 2 s: both run and connect recover", false},
	{"41", "list, page 2, create, rename, archive, unarchive, delete: REST and thread_metadata agree with getState", true},
	{"42", "user_meta token survives a reconnect", true},
	{"44", "one thread_run_activity at run start and one at run end, with runId", true},
	{"45", "metadata of one user never reaches another user's user_meta topic", true},
	{"46", "/run streams LF-only frames and always ends with a terminal event", true},
	{"47", "/stop ends the open SSE response of that run with closing events", true},
	{"48", "/connect replays history then follows the run; unknown thread gives an empty 200", true},
	{"49", "busy thread gives 409, not an empty 200", true},
	{"50", "HttpAgent of @ag-ui/client 1.0.0 runs without enforcement warnings", true},
}

// after are those that want the machine for themselves or that everybody notices, and at last those about all that happened.
var after = []statement{
	{"36", "socket killed mid-run, all frames acknowledged: resumes on the same token in under 0.5 s without duplicates", !underRace},
	{"43", "a failed delete restores the row", false},
	{"38", "server restart (1012) mid-run: as 37", false},
	{"8", "phx_close is never sent on a topic whose stream is unfinished", true},
	{"10", "no server-initiated close uses 1000", true},
	{"rules", "of 7, 8, 9, 10, 19 and 20 held on every socket", true},
}

// TestRealClients tries the statements with the unmodified clients, with either phoenix, on one node and on two.
func TestRealClients(t *testing.T) {
	needNode(t)
	for phoenix, client := range map[string]string{"1.8.15": "copilotkit-1815", "1.8.16": "copilotkit-1816"} {
		for setting, open := range settings {
			if !full && (setting != "embedded" || phoenix != "1.8.16") {
				continue
			}
			t.Run(fmt.Sprintf("phoenix %s, %s", phoenix, setting), func(t *testing.T) {
				b := open(t, client)
				if got := b.try(t, "version").Version; got != phoenix {
					t.Fatalf("the client comes with phoenix %s, not %s", got, phoenix)
				}
				b.tryAll(t)
			})
		}
	}
}

// tryAll tries all statements, each as a test of its own.
func (b *bench) tryAll(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var running []*attempt
	for _, s := range together {
		if full || s.short {
			running = append(running, b.begin(ctx, s))
		}
	}
	for _, a := range running {
		t.Run(a.name(), func(t *testing.T) { b.finish(t, a) })
	}
	if full {
		t.Run("16 /info answers in under 5 s while the store is down", b.infoWithoutStores)
	}
	for _, s := range after {
		if full || s.short {
			t.Run(s.name(), func(t *testing.T) { b.try(t, s.number) })
		}
	}
}

func (s statement) name() string { return s.number + " " + s.words }

func (b *bench) infoWithoutStores(t *testing.T) {
	if err := b.stores(false); err != nil {
		t.Fatal(err)
	}
	b.try(t, "16")
	if err := b.stores(true); err != nil {
		t.Fatal(err)
	}
}

// settings are the ways to run the server.
var settings = map[string]func(t *testing.T, client string) *bench{
	"embedded":  embeddedBench,
	"two nodes": clusterBench,
}

// embeddedBench has one node with its file. Its stores are away while somebody else holds the file's lock.
func embeddedBench(t *testing.T, client string) *bench {
	b := newBench(t, client, func(flags ...string) []*node { return []*node{start(t, flags...)} })
	outsider := connect(t, "file:"+b.all()[0].database()+"?_busy_timeout=10000")
	b.stores = func(back bool) error {
		statement := "BEGIN IMMEDIATE"
		if back {
			statement = "ROLLBACK"
		}
		_, err := outsider.ExecContext(context.Background(), statement)
		return err
	}
	return b
}

// clusterBench has two nodes with a Redis and a Postgres of their own, which are away while they are frozen. Requests and
// sockets go to the nodes in turn.
func clusterBench(t *testing.T, client string) *bench {
	redistest.Need(t)
	redis, postgres := redistest.Run(t, steady), pgtest.Start(t)
	b := newBench(t, client, func(flags ...string) []*node {
		c := &cluster{t: t, redis: redis, database: postgres.Database(t), flags: flags}
		return slices.Clone([]*node{c.add(), c.add()})
	})
	b.stores = func(back bool) error {
		if back {
			redis.Continue()
			return postgres.Resume()
		}
		redis.Pause()
		return postgres.Pause()
	}
	return b
}
