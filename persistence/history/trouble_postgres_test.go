package history_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/history"
	"github.com/threadcast/threadcast/persistence/historytest"
	"github.com/threadcast/threadcast/persistence/pgtest"
	"github.com/threadcast/threadcast/persistence/postgres"
	"github.com/threadcast/threadcast/persistence/thread"
)

// unavailable calls what a node calls, and expects of each that the storage is not available.
func unavailable(t *testing.T, h *history.History) {
	t.Helper()
	ctx := t.Context()
	_, start := h.StartRun(ctx, thread.Run{Thread: "t", ID: "new"})
	_, find := h.FindRun(ctx, "t", "r")
	_, next := h.NextRun(ctx, "t", 0)
	_, _, list := h.Threads(ctx, thread.Page{})
	save := h.SaveRun(ctx, thread.Run{Thread: "t", ID: "r", Number: 1, End: thread.End{Outcome: thread.OutcomeLost}})
	for doing, err := range map[string]error{
		"start run": start, "find run": find, "read the run": next, "list threads": list, "save run": save,
	} {
		if !errors.Is(err, thread.ErrUnavailable) || errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), doing) {
			t.Errorf("%s: error is %v, want an ErrUnavailable that says so", doing, err)
		}
	}
}

// TestAServerThatGoesAndComesBack ends a server under a node, in each way that there is.
func TestAServerThatGoesAndComesBack(t *testing.T) {
	const patience = 500 * time.Millisecond
	server := pgtest.Start(t)
	h, _, _ := openPostgres(t, server.Database(t), history.Options{Patience: patience})
	run, err := h.StartRun(t.Context(), thread.Run{Thread: "t", ID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		go_, on func() error
	}{
		{"stopped", server.Stop, server.Start},
		{"killed", server.Kill, server.Start},
		{"frozen", server.Pause, server.Resume},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.go_(); err != nil {
				t.Fatal(err)
			}
			before := time.Now()
			unavailable(t, h)
			if took := time.Since(before); took > 8*patience {
				t.Errorf("five calls took %v, though each waits for %v at most", took, patience)
			}
			if err := c.on(); err != nil {
				t.Fatal(err)
			}
			if _, err := h.FindRun(t.Context(), "t", "r"); err != nil {
				t.Errorf("when it is back: %v", err)
			}
		})
	}
	run.End.Outcome = thread.OutcomeFinished
	if err := h.SaveRun(t.Context(), run); err != nil && !errors.Is(err, thread.ErrUnavailable) {
		t.Errorf("save: %v", err)
	}
}

// TestAServerThatIsKilledWhileRunsEnd saves runs until each is saved, while the server is killed again and again.
func TestAServerThatIsKilledWhileRunsEnd(t *testing.T) {
	const runs = 60
	server := pgtest.Start(t)
	h, pool, _ := openPostgres(t, server.Database(t), history.Options{Patience: 5 * time.Second})
	todo := make(chan thread.Run, runs)
	for i := range runs {
		run, err := h.StartRun(t.Context(), thread.Run{Thread: thread.ID(fmt.Sprint("t", i)), ID: "r", Token: 1})
		if err != nil {
			t.Fatal(err)
		}
		run.End.Outcome, run.LastSeq = thread.OutcomeFinished, 2
		run.Events = []thread.Event{{First: 1, Last: 1, Data: fmt.Appendf(nil, `{"n":%d}`, i)}}
		run.Messages = []string{"m"}
		todo <- run
	}
	var left, savers sync.WaitGroup
	left.Add(runs)
	saved := make(chan struct{}, runs)
	for range 4 {
		savers.Go(func() {
			for run := range todo {
				switch err := h.SaveRun(context.Background(), run); {
				case err == nil:
					saved <- struct{}{}
					left.Done()
				case errors.Is(err, thread.ErrUnavailable):
					todo <- run
				default:
					t.Error(err)
					left.Done()
				}
			}
		})
	}
	for range 3 {
		for range runs / 6 {
			<-saved
		}
		if err := errors.Join(server.Kill(), server.Start()); err != nil {
			t.Fatal(err)
		}
	}
	left.Wait()
	close(todo)
	savers.Wait()
	for i := range runs {
		run, err := h.NextRun(t.Context(), thread.ID(fmt.Sprint("t", i)), 0)
		for errors.Is(err, thread.ErrUnavailable) { // over a connection to the server that was killed last
			run, err = h.NextRun(t.Context(), thread.ID(fmt.Sprint("t", i)), 0)
		}
		if err != nil || len(run.Events) != 1 || string(run.Events[0].Data) != fmt.Sprintf(`{"n":%d}`, i) {
			t.Errorf("run %d is %+v, %v", i, run, err)
		}
	}
	if got := lines(t, pool, `SELECT count(*)::text FROM agent_runs WHERE status = 'ended'`)[0]; got != fmt.Sprint(runs) {
		t.Errorf("%s runs are saved, want %d", got, runs)
	}
}

// TestANodeThatIsFrozenLetsOthersIn has a node stop in the middle of a transaction that holds a thread.
func TestANodeThatIsFrozenLetsOthersIn(t *testing.T) {
	url := pgtest.Database(t)
	h, _, _ := openPostgres(t, url, history.Options{})
	if _, err := h.StartRun(t.Context(), thread.Run{Thread: "t", ID: "r", Token: 1}); err != nil {
		t.Fatal(err)
	}
	frozen, err := openPool(t, url, postgres.Options{IdleInTransaction: 50 * time.Millisecond}).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := frozen.ExecContext(t.Context(), `SELECT * FROM threads WHERE id = 't' FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	if err := h.TakeRun(t.Context(), thread.Run{Thread: "t", ID: "r", Token: 2}); err != nil {
		t.Errorf("take over from it: %v", err)
	}
	if _, err := frozen.ExecContext(context.Background(), `UPDATE threads SET title = 'late'`); err == nil {
		t.Error("it goes on where it stopped")
	}
}

// TestALockIsNotWaitedForWithoutEnd has a node wait for another that goes on and on.
func TestALockIsNotWaitedForWithoutEnd(t *testing.T) {
	url := pgtest.Database(t)
	pool := openPool(t, url, postgres.Options{LockTimeout: 50 * time.Millisecond})
	h, err := history.NewPostgres(t.Context(), pool, history.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.StartRun(t.Context(), thread.Run{Thread: "t", ID: "r"}); err != nil {
		t.Fatal(err)
	}
	other, err := openPool(t, url, postgres.Options{}).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Rollback()
	if _, err := other.ExecContext(t.Context(), `SELECT * FROM threads WHERE id = 't' FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	if err := h.DeleteThread(t.Context(), historytest.Holding("t")); !errors.Is(err, thread.ErrUnavailable) || !strings.Contains(err.Error(), "55P03") {
		t.Errorf("error is %v, want ErrUnavailable for the lock", err)
	}
	if _, err := h.FindRun(t.Context(), "t", "r"); err != nil {
		t.Errorf("a reader is kept out: %v", err)
	}
}

// TestASlowDatabaseIsSlowAndNoMore has every statement of a transaction take its time: it is the silence that counts, not
// the sum.
func TestASlowDatabaseIsSlowAndNoMore(t *testing.T) {
	const patience = 2 * time.Second
	h, pool, _ := openPostgres(t, pgtest.Database(t), history.Options{Patience: patience})
	exec(t, pool, `CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.5); RETURN NULL; END'`)
	for _, table := range []string{"threads", "agent_runs", "run_state", "thread_messages"} {
		exec(t, pool, `CREATE TRIGGER slow AFTER INSERT OR UPDATE OR DELETE ON `+table+` EXECUTE FUNCTION slow()`)
	}
	run := thread.Run{Thread: "t", ID: "r"}
	for i := range 1200 {
		run.Messages = append(run.Messages, fmt.Sprint("m", i))
	}
	before := time.Now()
	run, err := h.StartRun(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(before); took < patience {
		t.Fatalf("it took %v, which shows nothing", took)
	}
	exec(t, pool, `CREATE OR REPLACE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(10); RETURN NULL; END'`)
	run.End.Outcome = thread.OutcomeFinished
	if err := h.SaveRun(t.Context(), run); !errors.Is(err, thread.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %v, want ErrUnavailable for the silence", err)
	}
}
