package agenttest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/threadcast/threadcast/runner"
	"github.com/threadcast/threadcast/runner/agenttest"
)

var input = runner.Input{ThreadID: `t"1`, RunID: "r1", JSON: []byte(`{"threadId":"t\"1","runId":"r1"}`)}

// recorder keeps what an agent emits.
type recorder struct{ events []string }

func (r *recorder) emit(event []byte) error {
	r.events = append(r.events, string(event))
	return nil
}

// events runs an agent and returns what it emitted.
func events(t *testing.T, a runner.Agent) []string {
	t.Helper()
	var r recorder
	if err := a.Run(t.Context(), input, r.emit); err != nil {
		t.Fatal(err)
	}
	return r.events
}

func TestAgentEmits(t *testing.T) {
	got := events(t, agenttest.New([]agenttest.Step{
		agenttest.Emit(`{"type":"RUN_STARTED","threadId":"{thread}","runId":"{run}"}`),
		agenttest.Emit("rubbish \xff"),
		agenttest.EmitJSON(map[string]any{"type": "CUSTOM", "value": nil}),
		agenttest.Repeat(3, `{"type":"A","delta":"{i}.{i}"}`, 0),
		agenttest.BigResult("c", "m", 5),
	}))
	want := []string{
		`{"type":"RUN_STARTED","threadId":"t\"1","runId":"r1"}`,
		"rubbish \xff",
		`{"type":"CUSTOM","value":null}`,
		`{"type":"A","delta":"0.0"}`, `{"type":"A","delta":"1.1"}`, `{"type":"A","delta":"2.2"}`,
		`{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","role":"tool","content":"xxxxx"}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestAgentPlaysOneScriptAfterTheOther(t *testing.T) {
	a := agenttest.New([]agenttest.Step{agenttest.Emit("1")}, []agenttest.Step{agenttest.Emit("2")})
	var got []string
	for range 3 {
		got = append(got, events(t, a)...)
	}
	if diff := cmp.Diff([]string{"1", "2", "2"}, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if a.Invocations() != 3 || len(a.Inputs()) != 3 || a.Inputs()[2].RunID != "r1" {
		t.Errorf("it counts %d runs, on %v", a.Invocations(), a.Inputs())
	}
	if got := events(t, agenttest.New()); got != nil {
		t.Errorf("without a script it emits %v", got)
	}
}

func TestAgentTakesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		events(t, agenttest.New([]agenttest.Step{agenttest.Repeat(5, "x", time.Second), agenttest.Sleep(time.Minute)}))
		if took := time.Since(began); took != 64*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestAgentWaitsAndMarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := agenttest.New([]agenttest.Step{
			agenttest.Mark("before"), agenttest.WaitFor("go"), agenttest.Mark("after"), agenttest.WaitFor("go"), agenttest.Mark("end"),
		})
		done := make(chan error, 1)
		go func() { done <- a.Run(t.Context(), input, new(recorder).emit) }()
		<-a.Mark("before")
		synctest.Wait()
		if len(a.Mark("after")) != 0 || a.Waiting("go") != 1 {
			t.Error("it does not wait")
		}
		a.Release("go")
		<-a.Mark("after")
		synctest.Wait()
		if len(done) != 0 || a.Waiting("go") != 1 {
			t.Error("a release that somebody waited for counts twice")
		}
		a.Release("go")
		if err := <-done; err != nil {
			t.Error(err)
		}
		if len(a.Mark("end")) != 1 {
			t.Error("the last mark was not reached")
		}
	})
}

func TestReleaseThatNobodyWaitsForLetsTheNextPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := agenttest.New([]agenttest.Step{agenttest.WaitFor("go")})
		a.Release("go")
		if err := a.Run(t.Context(), input, new(recorder).emit); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := a.Run(ctx, input, new(recorder).emit); err != context.DeadlineExceeded {
			t.Errorf("the second run ended with %v", err)
		}
		if a.Waiting("go") != 0 {
			t.Error("a run that is over still waits")
		}
	})
}

func TestAgentIsCancelled(t *testing.T) {
	stopped := errors.New("stopped by somebody")
	for name, step := range map[string]agenttest.Step{
		"while it waits": agenttest.WaitFor("never"), "while it sleeps": agenttest.Sleep(time.Hour),
		"between repetitions": agenttest.Repeat(9, "x", time.Hour),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := agenttest.New([]agenttest.Step{step})
				ctx, cancel := context.WithCancelCause(t.Context())
				done := make(chan error, 1)
				go func() { done <- a.Run(ctx, input, new(recorder).emit) }()
				synctest.Wait()
				cancel(stopped)
				if err := <-done; err != stopped {
					t.Errorf("Run returned %v", err)
				}
				if err := <-a.Cancelled(); err != stopped {
					t.Errorf("the cause that was noted is %v", err)
				}
			})
		})
	}
}

func TestRunThatEndsByItselfIsNotCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		a := agenttest.New(nil)
		if err := a.Run(ctx, input, new(recorder).emit); err != nil {
			t.Fatal(err)
		}
		cancel()
		synctest.Wait()
		if len(a.Cancelled()) != 0 {
			t.Error("the end of a context that nobody used any more was noted")
		}
	})
}

func TestAgentHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := agenttest.New([]agenttest.Step{agenttest.Hang("door")})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		done := make(chan error, 1)
		go func() { done <- a.Run(ctx, input, new(recorder).emit) }()
		<-time.After(time.Hour)
		if len(done) != 0 {
			t.Error("it returned although nobody released it")
		}
		a.Release("door")
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestAgentIgnoresCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := agenttest.New([]agenttest.Step{agenttest.Repeat(100, "x", time.Second)})
		a.IgnoreCancel = 5500 * time.Millisecond
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		calls := 0
		err := a.Run(ctx, input, func([]byte) error { calls++; return errors.New("refused") })
		if err != context.Canceled || calls != 6 {
			t.Errorf("it emitted %d events more, and returned %v", calls, err)
		}
		a.IgnoreCancel = time.Hour * 1000
		if err := a.Run(ctx, input, func([]byte) error { return nil }); err != nil {
			t.Errorf("a run that ended in time returned %v", err)
		}
	})
}

func TestAgentFailsAndPanics(t *testing.T) {
	broken := errors.New("broken")
	if err := agenttest.New([]agenttest.Step{agenttest.Fail(broken)}).Run(t.Context(), input, new(recorder).emit); err != broken {
		t.Errorf("Run returned %v", err)
	}
	if err := agenttest.New([]agenttest.Step{agenttest.SSE("x", agenttest.OnePiece)}).Run(t.Context(), input, new(recorder).emit); err == nil || !strings.Contains(err.Error(), "HTTP") {
		t.Errorf("a stream without HTTP gave %v", err)
	}
	full := errors.New("no more events are taken")
	if err := agenttest.New([]agenttest.Step{agenttest.Repeat(9, "x", 0)}).Run(t.Context(), input, func([]byte) error { return full }); err != full {
		t.Errorf("Run returned %v; want the error of emit", err)
	}
	defer func() {
		if p := recover(); p == nil {
			t.Error("it did not panic")
		}
	}()
	_ = agenttest.New([]agenttest.Step{agenttest.Panic("boom")}).Run(t.Context(), input, new(recorder).emit)
}

func TestFunc(t *testing.T) {
	got := events(t, agenttest.Func(func(_ context.Context, in runner.Input, emit func([]byte) error) error {
		return emit([]byte(in.RunID))
	}))
	if diff := cmp.Diff([]string{"r1"}, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
