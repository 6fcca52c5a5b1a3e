package main_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/postgres"
	"github.com/threadcast/threadcast/persistence/thread"
)

// clusterLease is the lease of the nodes of a cluster that loses some of them. Under the race detector a run may not get to
// renew a shorter one.
var clusterLease = func() time.Duration {
	if underRace {
		return 4 * time.Second
	}
	return 3 * time.Second
}()

// pause stops the process as it is; see [node.resume].
func (n *node) pause() { n.signal(syscall.SIGSTOP) }

// resume lets a paused process go on, which knows nothing of the time between.
func (n *node) resume() { n.signal(syscall.SIGCONT) }

func (n *node) signal(s syscall.Signal) {
	n.t.Helper()
	if err := n.cmd.Process.Signal(s); err != nil {
		n.t.Fatalf("send %s to the node: %v", s, err)
	}
}

// witness is a follower that keeps the events of every run that it has seen begin.
type witness struct {
	follower
	runs map[uint64][]string
	over map[uint64]time.Time // when the terminal of a run came
	away []time.Duration      // how long it had no node
}

// newWitness returns one that has seen everything up to a position, and has not joined.
func newWitness(n *node, thread string, pos thread.Cursor) *witness {
	w := &witness{runs: map[uint64][]string{}, over: map[uint64]time.Time{}}
	w.follower = follower{n: n, thread: thread, replay: "raw", pos: pos, take: w.see}
	return w
}

// see checks that nothing is missing and that a terminal is the last of its run.
func (w *witness) see(from, to thread.Cursor, b batch) error {
	if _, over := w.over[from.Run-1]; from.Seq == 0 && w.runs[from.Run-1] != nil && !over {
		return fmt.Errorf("run %d begins before the terminal of the run before it", from.Run)
	}
	for _, e := range b.Events {
		if _, over := w.over[from.Run]; over {
			return fmt.Errorf("after its terminal run %d has %.100s", from.Run, e)
		}
		w.runs[from.Run] = append(w.runs[from.Run], string(e))
		if isTerminal(e) {
			w.over[from.Run] = time.Now()
		}
	}
	_, over := w.over[from.Run]
	if got, want := uint64(len(b.Events)), to.Seq-from.Seq; got != want && (!over || got+1 != want) {
		return fmt.Errorf("it has %d events", got)
	}
	return nil
}

// untilOver follows until the terminal of a run has come.
func (w *witness) untilOver(run uint64) error {
	return w.until(func() bool { _, over := w.over[run]; return over })
}

// roam follows until a run is over, and goes on at another node whenever the socket ends. It tells with which codes
// its sockets were closed.
func (w *witness) roam(run uint64, next func(attempt int) *node) (codes []int, err error) {
	gone := time.Now()
	for attempt := range 100 {
		if w.channel == nil {
			w.n = next(attempt)
			if err = w.join(); err == nil && attempt > 0 {
				w.away = append(w.away, time.Since(gone))
			}
		}
		if err == nil {
			err = w.untilOver(run)
		}
		if err == nil || !isOver(err) {
			return codes, err
		}
		if w.channel != nil && !errors.Is(err, errSentAway) {
			code, err := w.closed()
			if err != nil {
				return codes, err
			}
			codes, gone = append(codes, code), time.Now()
		}
		w.drop()
		w.channel, err = nil, nil
	}
	return codes, fmt.Errorf("viewer of %s at %s: no node has it", w.thread, w.pos)
}

// isOver tells whether a follower failed with nothing but the end of its socket or of its membership.
func isOver(err error) bool { return errors.Is(err, errNothingMore) || errors.Is(err, errSentAway) }

// runWhenFree starts a run as soon as the thread takes one. It may be called from any goroutine.
func (n *node) runWhenFree(thread string, req any) error {
	late := time.After(patience)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		status, data, err := n.request(http.MethodPost, threadPath(thread)+"/runs", req)
		if err != nil || status == http.StatusAccepted {
			return err
		}
		if status != http.StatusConflict {
			return fmt.Errorf("a run on thread %s was answered %d %s", thread, status, data)
		}
		select {
		case <-again.C:
		case <-late:
			return fmt.Errorf("thread %s takes no run: %s", thread, data)
		}
	}
}

// post makes a request that is answered with 200, and decodes the answer. It may be called from any goroutine.
func (n *node) post(path string, body, answer any) error {
	status, data, err := n.request(http.MethodPost, path, body)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%s was answered %d %.200s", path, status, data)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(data, answer)
}

// closed waits for the end of the socket and returns its close code.
func (w *witness) closed() (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return w.client.Closed(ctx)
}

// query asks the cluster's database for one row.
func (c *cluster) query(text string, args []any, dest ...any) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return c.db().QueryRowContext(ctx, text, args...).Scan(dest...)
}

// db returns a connection to the cluster's database that is none of its nodes'.
func (c *cluster) db() *sql.DB {
	c.t.Helper()
	c.pool.Do(func() {
		db, err := postgres.Open(context.Background(), c.database, postgres.Options{})
		if err != nil {
			c.t.Fatal(err)
		}
		c.t.Cleanup(func() { _ = db.Close() })
		c.rows = db
	})
	return c.rows
}

// logged returns what Redis itself has of a run: its events, and what its end says. It fails unless the entries are numbered
// without a hole and the end is the last, and there once.
func (c *cluster) logged(id string, run uint64) (events []string, end thread.End, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	client := c.redis.Client()
	defer func() { _ = client.Close() }()
	keys, err := client.Keys(ctx, fmt.Sprintf("threadcast:stream:{*}%s:%d", id, run)).Result()
	if err == nil && len(keys) != 1 {
		err = fmt.Errorf("run %d of %s has the streams %v", run, id, keys)
	}
	if err != nil {
		return nil, end, err
	}
	entries, err := client.XRange(ctx, keys[0], "-", "+").Result()
	if err != nil {
		return nil, end, err
	}
	for i, e := range entries {
		if e.ID != fmt.Sprintf("%d-%d", run, i+1) || len(e.Values) != 1 {
			return nil, end, fmt.Errorf("entry %d of run %d of %s is %.200v", i+1, run, id, e)
		}
		for kind, data := range e.Values {
			last := i == len(entries)-1
			switch {
			case kind == "event" && !last:
				events = append(events, data.(string))
			case kind == "end" && last:
				err = json.Unmarshal([]byte(data.(string)), &end)
			default:
				err = fmt.Errorf("entry %d of %d of run %d of %s is of kind %s", i+1, len(entries), run, id, kind)
			}
		}
		if err != nil {
			return nil, end, err
		}
	}
	return events, end, nil
}

// row is what the cluster's database has of a run.
type row struct {
	outcome string
	lastSeq uint64
	token   uint64
}

// stored returns the row of a run that has ended. It waits for that, since viewers hear of an end before it is stored.
func (c *cluster) stored(thread string, run uint64) (r row, err error) {
	late := time.Now().Add(20 * time.Second)
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		err = c.query(`SELECT outcome, last_seq, token FROM agent_runs WHERE thread_id = $1 AND number = $2 AND status = 'ended'`,
			[]any{thread, run}, &r.outcome, &r.lastSeq, &r.token)
		if !errors.Is(err, sql.ErrNoRows) || time.Now().After(late) {
			return r, err
		}
		<-again.C
	}
}

// checkRun checks that a run which has ended is the same for everybody: these events, of which the last is the only
// terminal, in Redis, in the database and for every node that is given, with this outcome.
func (c *cluster) checkRun(id string, run uint64, events []string, outcome thread.Outcome, nodes ...*node) {
	c.t.Helper()
	bad := func(format string, args ...any) {
		c.t.Helper()
		c.t.Errorf("run %d of %s: %s", run, id, fmt.Sprintf(format, args...))
	}
	if ends := terminals(events); len(ends) != 1 || events[len(events)-1] != ends[0] {
		bad("of %d events the terminals are %v", len(events), ends)
	}
	inRedis, end, err := c.logged(id, run)
	if err != nil || !slices.Equal(inRedis, events) || end.Outcome != outcome {
		bad("Redis has %d events of %d, the end %+v, %v", len(inRedis), len(events), end, err)
	}
	r, err := c.stored(id, run)
	if err != nil || r.outcome != string(outcome) || r.lastSeq != uint64(len(events))+1 {
		bad("the database has %+v, %v; it has %d events and is %s", r, err, len(events), outcome)
	}
	for _, n := range nodes {
		asTheyWere, err := n.eventsOf(id, int(run), "raw")
		if err != nil || !slices.Equal(asTheyWere, events) {
			bad("the node at %s has %d events of %d, %v", n.addr, len(asTheyWere), len(events), err)
		}
		compacted, err := n.eventsOf(id, int(run), "compact")
		if err == nil {
			err = sameWords(events, compacted)
		}
		if err != nil {
			bad("compacted, at %s: %v", n.addr, err)
		}
	}
}

// sameWords compares events with what compaction has made of them.
func sameWords(events, compacted []string) error {
	original, got := bytesOf(events), bytesOf(compacted)
	parsed := make([]emitted, len(original))
	for i, e := range original {
		parsed[i] = parseEmitted(e)
	}
	return compareWords(parsed, original, got)
}

func bytesOf(events []string) [][]byte {
	all := make([][]byte, len(events))
	for i, e := range events {
		all[i] = []byte(e)
	}
	return all
}

// checkSettled checks that nothing runs in the cluster any more: no run without an end, no thread that is busy, no lease. So
// many runs there must be.
func (c *cluster) checkSettled(runs int) {
	c.t.Helper()
	var all, unended, busy int
	err := c.query(`SELECT count(*), count(*) FILTER (WHERE status <> 'ended'),
		(SELECT count(*) FROM run_state WHERE is_running = 1) FROM agent_runs`, nil, &all, &unended, &busy)
	if err != nil || all != runs || unended != 0 || busy != 0 {
		c.t.Errorf("of %d runs that there should be, the database has %d, %d of them without an end, on %d busy threads: %v",
			runs, all, unended, busy, err)
	}
	client := c.redis.Client()
	defer func() { _ = client.Close() }()
	eventually(c.t, 10*time.Second, "no lease is held any more", func() bool {
		keys, err := client.Keys(context.Background(), "threadcast:leases:*").Result()
		if err != nil {
			c.t.Fatal(err)
		}
		held := int64(0)
		for _, key := range keys {
			held += client.ZCard(context.Background(), key).Val()
		}
		return held == 0
	})
}

// code returns the code of the RUN_ERROR that an event is, or "".
func code(event string) string {
	var e struct{ Type, Code string }
	if json.Unmarshal([]byte(event), &e) != nil || e.Type != "RUN_ERROR" {
		return ""
	}
	return e.Code
}

// TestWitnessNoticesFaults makes sure of the measure before it is used.
func TestWitnessNoticesFaults(t *testing.T) {
	events := func(types ...string) (b batch) {
		for _, name := range types {
			b.Events = append(b.Events, json.RawMessage(`{"type":"`+name+`"}`))
		}
		return b
	}
	at := func(run, seq uint64) thread.Cursor { return thread.Cursor{Run: run, Seq: seq} }
	for name, test := range map[string]struct {
		from, to thread.Cursor
		batch    batch
		wrong    string
	}{
		"the next":              {at(1, 2), at(1, 3), events("CUSTOM"), ""},
		"the end":               {at(1, 2), at(1, 4), events("RUN_FINISHED"), ""},
		"one lost":              {at(1, 2), at(1, 4), events("CUSTOM"), "it has 1 events"},
		"one too many":          {at(1, 2), at(1, 3), events("CUSTOM", "CUSTOM"), "it has 2 events"},
		"more after the end":    {at(1, 2), at(1, 4), events("RUN_FINISHED", "CUSTOM"), "after its terminal"},
		"a run too soon":        {at(2, 0), at(2, 1), events("RUN_STARTED"), "before the terminal"},
		"an end without events": {at(1, 2), at(1, 3), events(), "it has 0 events"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWitness(nil, "t", thread.Cursor{})
			if err := w.see(at(1, 0), at(1, 2), events("RUN_STARTED", "CUSTOM")); err != nil {
				t.Fatal(err)
			}
			err := w.see(test.from, test.to, test.batch)
			if (err != nil) != (test.wrong != "") || err != nil && !strings.Contains(err.Error(), test.wrong) {
				t.Errorf("the witness says: %v", err)
			}
		})
	}
}
