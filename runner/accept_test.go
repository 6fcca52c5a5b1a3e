package runner_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/threadcast/threadcast/persistence/logtest"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner"
	"github.com/threadcast/threadcast/runner/agenttest"
)

func TestAccept(t *testing.T) {
	t.Run("the run is recorded before it is answered and before the agent begins", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent := agenttest.New(answer(1))
			r := b.node(agent)
			gate := make(chan struct{})
			b.past.inject("StartRun", 1, fault{wait: gate})
			answered := b.ask(r, "t", "r1")
			b.pass(lease / 2)
			same(b, "answers", 0, len(answered))
			same(b, "invocations", 0, agent.Invocations())
			close(gate)
			same(b, "answer", thread.Accepted{RunID: "r1", Cursor: thread.Cursor{Run: 1}}, <-answered)
			run, there := b.past.run("t", "r1")
			same(b, "recorded", true, there)
			same(b, "agent", "a", run.Agent)
			synctest.Wait()
			same(b, "invocations", 1, agent.Invocations())
			same(b, "outcome", "finished", b.last("t").outcome())
		})
	})
	t.Run("what the client said is recorded", func(t *testing.T) {
		bubble(t, func(b *bench) {
			r := b.node(agenttest.New(answer(1)))
			b.perform(r, "t", "r1")
			req := requestWith("t", "r2", `"parentRunId":"p","messages":[{"id":"u2","role":"user","content":"and then?"}]`)
			if _, err := r.Run(b.Context(), req); err != nil {
				b.Fatal(err)
			}
			run, _ := b.past.run("t", "r2")
			same(b, "parent", "p", run.Parent)
			same(b, "previous", thread.RunID("r1"), run.Previous)
			same(b, "number", uint64(2), run.Number)
			same(b, "title", "and then?", run.Title)
		})
	})
	t.Run("a run without an id gets one of its own", func(t *testing.T) {
		bubble(t, func(b *bench) {
			r := b.node(agenttest.New(answer(1)))
			first, second := b.begin(r, "t", ""), b.begin(r, "u", "")
			if first.RunID == "" || first.RunID == second.RunID {
				b.Errorf("ids are %q and %q", first.RunID, second.RunID)
			}
			synctest.Wait()
			same(b, "id in the log", first.RunID, b.last("t").id)
		})
	})
}

func TestAcceptOnABusyThread(t *testing.T) {
	t.Run("a busy thread says with what and since when", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent := agenttest.New(held([]string{started}, []string{finished}))
			r := b.node(agent)
			since := time.Now()
			b.begin(r, "t", "r1")
			b.pass(50 * time.Minute)
			_, err := r.Run(b.Context(), request("t", "r2"))
			busy, ok := errors.AsType[*thread.RunningError](err)
			if !ok || !errors.Is(err, thread.ErrRunning) {
				b.Fatalf("error is %v", err)
			}
			same(b, "active run", thread.RunID("r1"), busy.RunID)
			same(b, "since", since, busy.Since)
			if _, there := b.past.run("t", "r2"); there {
				b.Error("the refused run is recorded")
			}
			b.begin(r, "u", "r2") // another thread is free
			synctest.Wait()
			agent.Release("go")
			synctest.Wait()
			same(b, "outcome", "finished", b.last("t").outcome())
		})
	})
	t.Run("a busy thread of another node is busy here", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent := agenttest.New(held([]string{started}, []string{finished}))
			b.begin(b.node(agent), "t", "r1")
			_, err := b.node(agent).Run(b.Context(), request("t", "r2"))
			busy, ok := errors.AsType[*thread.RunningError](err)
			if !ok || busy.RunID != "r1" {
				b.Fatalf("error is %v", err)
			}
			agent.Release("go")
		})
	})
	t.Run("a caller who leaves does not undo it", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent := agenttest.New(answer(1))
			r := b.node(agent)
			gate := make(chan struct{})
			b.past.inject("StartRun", 1, fault{wait: gate})
			ctx, cancel := context.WithCancel(b.Context())
			answered := make(chan error, 1)
			go func() {
				_, err := r.Run(ctx, request("t", "r1"))
				answered <- err
			}()
			synctest.Wait()
			cancel()
			synctest.Wait()
			close(gate)
			same(b, "error", nil, <-answered)
			synctest.Wait()
			same(b, "outcome", "finished", b.last("t").outcome())
		})
	})
}

func TestAcceptTwice(t *testing.T) {
	t.Run("the same run id gets the same answer and starts nothing", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent := agenttest.New(held([]string{started}, []string{finished}), answer(1))
			r := b.node(agent)
			first := b.begin(r, "t", "r1")
			same(b, "answer while it runs", first, b.begin(r, "t", "r1"))
			same(b, "answer of another node", first, b.begin(b.node(agent), "t", "r1"))
			agent.Release("go")
			synctest.Wait()
			b.perform(r, "t", "r2")
			same(b, "answer long after", first, b.begin(r, "t", "r1"))
			synctest.Wait()
			same(b, "invocations", 2, agent.Invocations())
		})
	})
	t.Run("twenty at once get one answer and one run", func(t *testing.T) {
		for round := range 50 {
			bubble(t, func(b *bench) {
				agent := agenttest.New(held([]string{started}, []string{finished}))
				nodes := []*runner.Runner{b.node(agent), b.node(agent)}
				answers := make([]thread.Accepted, 20)
				var callers sync.WaitGroup
				for i := range answers {
					callers.Go(func() {
						acc, err := nodes[i%(1+round%2)].Run(b.Context(), request("t", "r1"))
						if err != nil {
							b.Errorf("caller %d: %v", i, err)
						}
						answers[i] = acc
					})
				}
				callers.Wait()
				for i, acc := range answers {
					same(b, fmt.Sprint("answer ", i), thread.Accepted{RunID: "r1", Cursor: thread.Cursor{Run: 1}}, acc)
				}
				agent.Release("go")
				synctest.Wait()
				same(b, "invocations", 1, agent.Invocations())
				same(b, "runs", 1, len(b.ended("t")))
			})
		}
	})
	t.Run("a run that came and went meanwhile is answered too", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent := agenttest.New(answer(1))
			r, other := b.node(agent), b.node(agent)
			gate := make(chan struct{})
			b.log.Inject(logtest.Acquire, 1, logtest.Fault{Wait: gate})
			answered := b.ask(r, "t", "r1")
			synctest.Wait()
			b.perform(other, "t", "r1")
			close(gate)
			same(b, "answer", thread.Accepted{RunID: "r1", Cursor: thread.Cursor{Run: 1}}, <-answered)
			same(b, "invocations", 1, agent.Invocations())
		})
	})
	t.Run("the same run id with another agent is refused", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent := agenttest.New(answer(1))
			r := b.node(agent)
			b.perform(r, "t", "r1")
			req := request("t", "r1")
			req.Agent = "other"
			if _, err := r.Run(b.Context(), req); !errors.Is(err, thread.ErrRunIDUsed) {
				b.Errorf("error is %v", err)
			}
			req.Thread, req.Input = "u", request("u", "r1").Input // another thread may use it
			if _, err := r.Run(b.Context(), req); err != nil {
				b.Error(err)
			}
			synctest.Wait()
			same(b, "invocations", 2, agent.Invocations())
		})
	})
}

// inputOf asks for run r1 on thread t with this input.
func inputOf(input string) thread.Request {
	return thread.Request{Thread: "t", RunID: "r1", Input: func(thread.RunID) ([]byte, error) { return []byte(input), nil }}
}

func TestAcceptRefuses(t *testing.T) {
	errOwn := errors.New("no input")
	named := func(id thread.ID, run thread.RunID) thread.Request { return request(id, run) }
	unknown := request("t", "r1")
	unknown.Agent = "nobody"
	for _, c := range []struct {
		name string
		req  thread.Request
		want error
	}{
		{"an unknown agent", unknown, thread.ErrUnknownAgent},
		{"a missing thread id", named("", "r1"), thread.ErrBadInput},
		{"a control character in the thread id", named("t\n", "r1"), thread.ErrBadInput},
		{"a control character in the run id", named("t", "r\x00"), thread.ErrBadInput},
		{"an input that cannot be made", thread.Request{Thread: "t", RunID: "r1",
			Input: func(thread.RunID) ([]byte, error) { return nil, errOwn }}, errOwn},
		{"an input that is not JSON", inputOf(`{`), thread.ErrBadInput},
		{"an input without messages", inputOf(`{"threadId":"t","runId":"r1"}`), thread.ErrBadInput},
		{"an input for another thread", inputOf(`{"threadId":"u","runId":"r1","messages":[]}`), thread.ErrBadInput},
		{"an input for another run", inputOf(`{"threadId":"t","runId":"r2","messages":[]}`), thread.ErrBadInput},
		{"an input that no run can begin with", inputOf(
			`{"threadId":"t","runId":"r1","messages":[{"id":"m","role":"user","content":"","subagentRunId":null}]}`),
			thread.ErrBadInput},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(b *bench) {
				agent := agenttest.New(answer(1))
				r := b.node(agent)
				if _, err := r.Run(b.Context(), c.req); !errors.Is(err, c.want) {
					b.Fatalf("error is %v, want %v", err, c.want)
				}
				same(b, "rows", 0, b.past.count("StartRun"))
				same(b, "leases", 0, b.log.Calls(logtest.Acquire))
				b.perform(r, "t", "r1")
				same(b, "invocations", 1, agent.Invocations())
			})
		})
	}
}

func TestAcceptWhenStoresAreAway(t *testing.T) {
	cut := fault{err: thread.ErrUnavailable, cut: true}
	for _, c := range []struct {
		name   string
		method string
		fault  fault
	}{
		{"while looking for the run", "FindRun", fault{err: thread.ErrUnavailable}},
		{"while looking for messages", "Known", fault{err: thread.ErrUnavailable}},
		{"while recording the run", "StartRun", fault{err: thread.ErrUnavailable}},
		{"after recording the run", "StartRun", cut},
	} {
		t.Run("the history "+c.name+" means unavailable and the next run works", func(t *testing.T) {
			bubble(t, func(b *bench) {
				r := b.node(agenttest.New(answer(1)))
				b.past.inject(c.method, 1, c.fault)
				if _, err := r.Run(b.Context(), request("t", "r1")); !errors.Is(err, thread.ErrUnavailable) {
					b.Fatalf("error is %v", err)
				}
				if held, err := b.memory.Holder(b.Context(), "t"); !errors.Is(err, thread.ErrNotFound) {
					b.Fatalf("the lease is held: %+v", held)
				}
				same(b, "outcome", "finished", b.perform(r, "t", "r2").outcome())
				if c.fault.cut { // what was recorded has got its end
					same(b, "first run", "lost lost", b.ended("t")[0].outcome())
				}
			})
		})
	}
	t.Run("no lease to be had means unavailable", func(t *testing.T) {
		bubble(t, func(b *bench) {
			r := b.node(agenttest.New(answer(1)))
			b.log.Inject(logtest.Acquire, 1, logtest.Fault{Err: thread.ErrUnavailable})
			if _, err := r.Run(b.Context(), request("t", "r1")); !errors.Is(err, thread.ErrUnavailable) {
				b.Fatalf("error is %v", err)
			}
			same(b, "outcome", "finished", b.perform(r, "t", "r1").outcome())
		})
	})
}

func TestAcceptWhenTheHistoryIsSlow(t *testing.T) {
	t.Run("a history that hangs means unavailable", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent := agenttest.New(answer(1))
			r := b.node(agent)
			b.past.inject("StartRun", 1, fault{wait: make(chan struct{})})
			began := time.Now()
			if _, err := r.Run(b.Context(), request("t", "r1")); !errors.Is(err, thread.ErrUnavailable) {
				b.Fatalf("error is %v", err)
			}
			same(b, "took", 20*time.Second, time.Since(began))
			same(b, "invocations", 0, agent.Invocations())
		})
	})
	t.Run("a history that is slower than the lease costs the run nothing, since that is renewed", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent := agenttest.New(held([]string{started}, []string{finished}))
			r, other := b.node(agent), b.node(agent)
			gate := make(chan struct{})
			b.past.inject("StartRun", 1, fault{wait: gate})
			time.AfterFunc(lease+time.Second/2, func() { _, _ = other.Reclaim(b.Context()) })
			time.AfterFunc(lease+time.Second, func() { close(gate) })
			b.begin(r, "t", "r1")
			b.pass(10 * lease)
			agent.Release("go")
			synctest.Wait()
			same(b, "outcome", "finished", b.last("t").outcome())
		})
	})
	t.Run("a run that is recorded after another took the lease gives way", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent := agenttest.New(held([]string{started}, []string{finished}))
			r, other := b.node(agent), b.node(agent)
			gate := make(chan struct{})
			b.past.inject("StartRun", 1, fault{wait: gate})
			for nth := 1; nth <= 45; nth++ { // until it has expired
				b.log.Inject(logtest.Renew, nth, logtest.Fault{Err: thread.ErrUnavailable})
			}
			time.AfterFunc(lease+time.Second, func() { b.begin(other, "t", "r2") })
			time.AfterFunc(lease+2*time.Second, func() { close(gate) })
			if _, err := r.Run(b.Context(), request("t", "r1")); !errors.Is(err, thread.ErrLeaseLost) {
				b.Fatalf("error is %v", err)
			}
			agent.Release("go")
			synctest.Wait()
			same(b, "runs", 1, len(b.ended("t")))
			same(b, "outcome", "finished", b.last("t").outcome())
			same(b, "invocations", 1, agent.Invocations())
		})
	})
	t.Run("a history so slow that the lease is nearly used up leaves time to renew it", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent := agenttest.New(held([]string{started}, []string{finished}))
			r := b.node(agent)
			gate := make(chan struct{})
			b.past.inject("StartRun", 1, fault{wait: gate})
			time.AfterFunc(lease-time.Second, func() { close(gate) })
			b.begin(r, "t", "r1")
			b.pass(10 * lease)
			agent.Release("go")
			synctest.Wait()
			same(b, "outcome", "finished", b.last("t").outcome())
		})
	})
	t.Run("a wish to stop that comes before the run is recorded is heard", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent := agenttest.New(held([]string{started}, []string{finished}))
			r := b.node(agent)
			gate := make(chan struct{})
			b.past.inject("StartRun", 1, fault{wait: gate})
			time.AfterFunc(time.Second, func() {
				if _, err := b.memory.AskStop(b.Context(), "t", thread.StopRequest{RunID: "r1", By: "alice"}); err != nil {
					b.Error(err)
				}
			})
			time.AfterFunc(lease+time.Second, func() { close(gate) })
			b.begin(r, "t", "r1")
			b.pass(2 * time.Second)
			same(b, "outcome", "stopped", b.last("t").outcome())
		})
	})
	t.Run("a run whose predecessor cannot be saved waits, then means unavailable", func(t *testing.T) {
		bubble(t, func(b *bench) {
			r := b.node(agenttest.New(answer(1)))
			for nth := range 100 {
				b.past.inject("SaveRun", nth+1, fault{err: thread.ErrUnavailable})
			}
			b.begin(r, "t", "r1")
			synctest.Wait()
			_, err := r.Run(b.Context(), request("t", "r2"))
			if !errors.Is(err, thread.ErrUnavailable) || errors.Is(err, thread.ErrRunning) {
				b.Fatalf("error is %v", err)
			}
			b.pass(2 * time.Minute)
			same(b, "outcome", "finished", b.perform(r, "t", "r2").outcome())
		})
	})
}

// watch returns a channel that receives the end of each run of a thread at the moment it is readable.
func (b *bench) watch(id thread.ID) (ends <-chan thread.RunID, stop func()) {
	seen := make(chan thread.RunID, 4096)
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = b.memory.Tail(ctx, id, thread.Cursor{}, func(entries []thread.Entry) error {
			for _, e := range entries {
				if e.Kind == thread.KindEnd {
					seen <- e.RunID
				}
			}
			return nil
		})
	}()
	return seen, func() { cancel(); <-done }
}

// tardy is a log whose replies to appends that bring an end are held back, though everybody can read the end.
type tardy struct {
	live
	gate chan struct{}
}

func (l tardy) Append(ctx context.Context, held thread.Lease, entries []thread.Entry) error {
	err := l.live.Append(ctx, held, entries)
	if entries[len(entries)-1].Kind == thread.KindEnd {
		<-l.gate
	}
	return err
}

func TestAcceptAtOnceAfterTheEnd(t *testing.T) {
	t.Run("a thread whose run has just ended takes the next one, a thousand times", func(t *testing.T) {
		bubble(t, func(b *bench) {
			failing := append(script(started, open), agenttest.Fail(errors.New("no")))
			scripts := make([][]agenttest.Step, 1000)
			for i := range scripts {
				scripts[i] = answer(2)
				if i%3 == 0 {
					scripts[i] = failing
				}
			}
			r := b.node(agenttest.New(scripts...))
			ends, stop := b.watch("t")
			defer stop()
			for i := range scripts {
				id := thread.RunID(fmt.Sprint("r", i))
				b.begin(r, "t", id)
				same(b, "ended", id, <-ends)
			}
			synctest.Wait()
			same(b, "runs", len(scripts), len(b.ended("t")))
		})
	})
	for _, c := range []struct {
		name  string
		steps []agenttest.Step
	}{
		{"finished", answer(1)},
		{"failed", append(script(started), agenttest.Fail(errors.New("no")))},
	} {
		t.Run("a thread whose run has "+c.name+" takes the next one before its node knows that", func(t *testing.T) {
			bubble(t, func(b *bench) {
				gate := make(chan struct{})
				r := b.nodeOn(tardy{b.log, gate}, agenttest.New(c.steps), b.config())
				ends, stop := b.watch("t")
				defer stop()
				b.begin(r, "t", "r1")
				same(b, "ended", thread.RunID("r1"), <-ends)
				answered := b.ask(r, "t", "r2")
				b.pass(time.Second)
				same(b, "answers", 0, len(answered))
				close(gate)
				same(b, "answer", thread.Cursor{Run: 2}, (<-answered).Cursor)
				synctest.Wait()
				same(b, "runs", 2, len(b.ended("t")))
			})
		})
	}
}
