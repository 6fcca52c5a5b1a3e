package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/threadcast/threadcast/runner/agenttest"
	"github.com/threadcast/threadcast/web/webtest"
)

// Three nodes, three tabs on each, and each tab has three threads open on one socket. On each thread runs follow each other
// at once: each is started in another tab, which has just seen the one before end, and every second one is stopped from
// yet another tab. Answers reach the tab that asked and no other; the events of a thread reach all tabs, once and in
// order, and nothing else does.
func TestEveryTabSeesItsThreadsOnEveryNode(t *testing.T) {
	t.Parallel()
	rounds := sized(9, 3)
	agent := agenttest.NewServer(t)
	says := `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m-{run}","delta":"{thread} {run};"}`
	opens := emits(begins, `{"type":"TEXT_MESSAGE_START","messageId":"m-{run}","role":"assistant"}`)
	agent.Handle("brief", append(append(opens[:2:2], agenttest.Repeat(30, says, time.Millisecond)),
		emits(`{"type":"TEXT_MESSAGE_END","messageId":"m-{run}"}`, ends)...))
	agent.Handle("endless", append(opens[:2:2], agenttest.Repeat(100_000, says, 10*time.Millisecond)))
	c := startCluster(t, 3, "--log-level", "warn",
		"--agent", "brief=agui:"+agent.URL("brief"), "--agent", "endless=agui:"+agent.URL("endless"))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	m := newMatrix(ctx, t, c.nodes, rounds)
	group, ctx := errgroup.WithContext(ctx)
	m.ctx = ctx
	for j := range m.threads {
		group.Go(func() error { return m.converse(j) })
		for _, tab := range m.tabs {
			group.Go(func() error { return tab.views[j].watch(ctx, rounds) })
		}
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	m.check(c.nodes)
}

// matrix is tabs on several nodes that all have the same threads open.
type matrix struct {
	*testing.T
	ctx     context.Context
	threads []string
	rounds  int
	tabs    []*window
	asked   [][]time.Time // when a run was accepted, by thread and round
}

// window is a tab: a socket with a view of each thread.
type window struct {
	client *webtest.Client
	views  []*view
}

// view is a viewer that notes how far it has come. All but the notes belongs to the goroutine of watch.
type view struct {
	*webtest.Viewer
	begun, ended progress // runs
	seen         []time.Time
}

func newMatrix(ctx context.Context, t *testing.T, nodes []*node, rounds int) *matrix {
	t.Helper()
	m := &matrix{T: t, ctx: ctx, threads: []string{"red", "green", "blue"}, rounds: rounds}
	m.asked = make([][]time.Time, len(m.threads))
	for i := range 3 * len(nodes) {
		client, err := webtest.Dial(ctx, nodes[i/3].url, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.Drop)
		each := &window{client: client}
		for _, thread := range m.threads {
			v := &view{Viewer: webtest.NewViewer(thread, map[string]any{"replay": "raw"})}
			if err := v.Join(ctx, client); err != nil {
				t.Fatal(err)
			}
			each.views = append(each.views, v)
		}
		m.tabs = append(m.tabs, each)
	}
	return m
}

// watch sees all rounds of the thread.
func (v *view) watch(ctx context.Context, rounds int) error {
	return v.Until(ctx, func(*webtest.Viewer) bool {
		over := 0
		for i, r := range v.Runs {
			if i == len(v.seen) {
				v.seen = append(v.seen, time.Now())
			}
			if r.Terminal() {
				over++
			}
		}
		v.begun.see(len(v.Runs))
		v.ended.see(over)
		return over == rounds
	})
}

// push asks something on a view's membership.
func (m *matrix) push(v *view, event string, payload, answer any) error {
	data, err := v.Channel().Push(m.ctx, event, payload)
	if err != nil {
		return fmt.Errorf("%s on %s: %w", event, v.Thread, err)
	}
	return json.Unmarshal(data, answer)
}

// wait waits for what a view has to see.
func (m *matrix) wait(seen <-chan struct{}) error {
	select {
	case <-seen:
		return nil
	case <-m.ctx.Done():
		return context.Cause(m.ctx)
	}
}

// converse has the runs of a thread started and stopped.
func (m *matrix) converse(j int) error {
	for k := range m.rounds {
		first := 4*k + 3*j // on another node than in the round before
		starter, stopper := m.tabs[first%len(m.tabs)].views[j], m.tabs[(first+5)%len(m.tabs)].views[j]
		req := runRequest{AgentID: "brief", RunID: runID(uint64(k) + 1), Messages: json.RawMessage("[]")}
		if k%2 == 1 {
			req.AgentID = "endless"
		}
		if err := m.wait(starter.ended.after(k)); err != nil {
			return err
		}
		var acc accepted
		if err := m.push(starter, "run", req, &acc); err != nil {
			return err
		}
		m.asked[j] = append(m.asked[j], time.Now())
		if acc.RunID != req.RunID {
			return fmt.Errorf("run %s on %s was answered %+v", req.RunID, starter.Thread, acc)
		}
		if req.AgentID == "endless" {
			if err := m.stop(j, k, stopper); err != nil {
				return err
			}
		}
	}
	return nil
}

// stop stops the run of a round, after it is seen in all tabs.
func (m *matrix) stop(j, k int, stopper *view) error {
	run := runID(uint64(k) + 1)
	for i, tab := range m.tabs {
		v := tab.views[j]
		if err := m.wait(v.begun.after(k + 1)); err != nil {
			return err
		}
		var st status
		if err := m.push(v, "status", map[string]any{}, &st); err != nil {
			return err
		}
		if !st.Running || st.RunID != run || st.AgentID != "endless" {
			return fmt.Errorf("tab %d is told that %s stands at %+v", i, v.Thread, st)
		}
	}
	var stopped struct {
		Stopped bool
		RunID   string
	}
	err := m.push(stopper, "stop", map[string]any{}, &stopped)
	if err == nil && (!stopped.Stopped || stopped.RunID != run) {
		err = fmt.Errorf("stop of %s on %s was answered %+v", run, stopper.Thread, stopped)
	}
	return err
}

// check compares what all tabs have seen with what each node has, and looks how late it was.
func (m *matrix) check(nodes []*node) {
	m.Helper()
	for j, thread := range m.threads {
		nodes[0].ended(thread, runID(uint64(m.rounds)))
		for i, n := range nodes {
			record := allEvents(n.record(thread, "", "raw"))
			for k, tab := range m.tabs {
				same(m, fmt.Sprintf("thread %s in tab %d, and for node %d", thread, k+1, i+1), tab.views[j].Events(), record)
			}
		}
		verify(m, thread, m.tabs[0].views[j].Events())
		for k, r := range m.tabs[0].views[j].Runs {
			got, each := text(m, r.Events, "m-"+r.ID), fmt.Sprintf("%s %s;", thread, r.ID)
			if r.ID != runID(uint64(k)+1) || strings.Trim(strings.ReplaceAll(got, each, "."), ".") != "" || k%2 == 0 && len(got) != 30*len(each) {
				m.Errorf("run %d of %s is %s, and says %.200q", k+1, thread, r.ID, got)
			}
		}
	}
	for i, n := range nodes {
		var list struct{ Threads []struct{ ID string } }
		n.do(http.MethodGet, "/api/threads", nil, &list)
		if len(list.Threads) != len(m.threads) {
			m.Errorf("node %d lists the threads %+v", i+1, list.Threads)
		}
	}
	var late []time.Duration
	for i, tab := range m.tabs {
		if n := tab.client.Strays(); n > 0 {
			m.Errorf("%d frames came to tab %d that were not for it", n, i+1)
		}
		if err := tab.client.Heartbeat(m.ctx); err != nil && !errors.Is(err, context.Canceled) {
			m.Errorf("tab %d was cut: %v", i+1, err)
		}
		for j, v := range tab.views {
			for k, seen := range v.seen {
				late = append(late, max(0, seen.Sub(m.asked[j][k])))
			}
		}
	}
	p50, p99, longest := percentile(late, 0.5), percentile(late, 0.99), percentile(late, 1)
	measured(m, "%d times a tab saw a run begin, after its start was answered: p50 %s, p99 %s, longest %s", len(late), p50, p99, longest)
	if p99 > 200*time.Millisecond && len(late) > 200 && !underRace {
		m.Errorf("p99 of seeing a run begin is %s", p99)
	}
}
