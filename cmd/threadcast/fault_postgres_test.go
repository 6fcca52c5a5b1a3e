package main_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/threadcast/threadcast/persistence/pgtest"
	"github.com/threadcast/threadcast/persistence/redislog/redistest"
	"github.com/threadcast/threadcast/persistence/thread"
)

// unnoticed is how long a viewer of a steady agent may hear nothing while Postgres is away.
const unnoticed = time.Second

// TestRunsOutliveTheirPostgres takes Postgres away in mid run. Viewers do not notice; runs go on, end, and are stopped; a node
// dies; and what could not be stored is stored once, by whoever is there, when Postgres is back.
func TestRunsOutliveTheirPostgres(t *testing.T) {
	t.Parallel()
	away := time.Duration(sized(60, 5)) * time.Second
	server := pgtest.Start(t)
	o := withStores(t, redistest.Config{}, server.Database(t), "--lease", "4s")
	one, two, three := o.add(), o.add(), o.add()
	o.next("past", "r1", one)
	on := o.run("goes on", one, two)
	during := o.run("ends", one, two)
	halted := o.run("is stopped", one, two)
	o.start("ends and loses its node", three)
	o.start("loses its node", three)
	orphans := []*watcher{
		o.watch("ends and loses its node", one), o.watch("ends and loses its node", two),
		o.watch("loses its node", one), o.watch("loses its node", two),
	}
	ready := o.askReady()
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	down := time.Now()
	ready.awaitRed(one, two)
	for call, said := range o.entryPoints(two, "past") {
		said.check(t, call, http.StatusServiceUnavailable, "unavailable")
	}
	o.finish("ends", "ends and loses its node")
	asked := time.Now()
	if code := two.do(http.MethodPost, threadPath("is stopped")+"/stop", nil, nil); code != http.StatusOK {
		t.Errorf("stop from another node was answered %d", code)
	}
	stopped := time.Since(asked)
	for _, w := range halted {
		w.ended()
	}
	three.kill()
	o.nodes = o.nodes[:2]
	<-time.After(time.Until(down.Add(away)))
	var silence time.Duration
	for _, w := range on {
		silence = max(silence, w.silence(down))
	}
	if silence > unnoticed {
		t.Errorf("viewers heard nothing for %s", silence)
	}
	if n := o.sentAway(); n > 0 {
		t.Errorf("%d memberships ended", n)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	up := time.Now()
	for _, w := range orphans[2:] {
		w.cutOff("lost")
	}
	o.finish("goes on")
	o.stored(thread.OutcomeStopped, "is stopped")
	o.stored(thread.OutcomeLost, "loses its node")
	o.stored(thread.OutcomeFinished, "past", "goes on", "ends", "ends and loses its node")
	all := time.Since(up)
	for _, w := range append(append(on, during...), orphans[:2]...) {
		w.check()
	}
	measured(t, "away for %s: viewers heard nothing for at most %s, %d memberships ended; a stop from another node took %s; everything was stored %s after it was back",
		up.Sub(down).Round(time.Millisecond), silence.Round(time.Millisecond), o.sentAway(), stopped.Round(time.Millisecond), all.Round(time.Millisecond))
}

// inPostgres runs statements in a database, on a connection that ends with the test.
func inPostgres(t *testing.T, database string, statements ...string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	for _, s := range statements {
		if _, err := conn.Exec(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	return conn
}

// TestASlowPostgres makes every write of a run, a thread or its state take two seconds, which is longer than the lease for all
// that a run needs. Viewers do not notice, and every run is stored once.
func TestASlowPostgres(t *testing.T) {
	t.Parallel()
	runs := sized(8, 3)
	o := newOrdeal(t, "--lease", "4s")
	one, two := o.add(), o.add()
	inPostgres(t, o.database,
		`CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(2); RETURN NULL; END'`,
		`CREATE TRIGGER slow AFTER INSERT OR UPDATE ON agent_runs FOR EACH STATEMENT EXECUTE FUNCTION slow()`,
		`CREATE TRIGGER slow AFTER INSERT OR UPDATE ON run_state FOR EACH STATEMENT EXECUTE FUNCTION slow()`,
		`CREATE TRIGGER slow AFTER INSERT OR UPDATE ON threads FOR EACH STATEMENT EXECUTE FUNCTION slow()`)
	name := func(i int) string { return fmt.Sprintf("slow %d", i) }
	var names []string
	for i := range runs {
		names = append(names, name(i))
		for _, n := range o.nodes {
			o.watch(name(i), n)
		}
	}
	asked := time.Now()
	o.runs = append(o.runs, names...)
	forEach(runs, runs, func(i int) {
		if err := o.nodes[i%2].tryRun(name(i), load("r1", 0, 0, 0, false)); err != nil {
			t.Error(err)
		}
	})
	accepted := time.Since(asked)
	began := time.Now()
	for _, w := range o.watchers {
		w.await("some is seen", func() bool { return len(w.events) > 100 })
	}
	released := time.Now()
	o.finish(names...)
	told := time.Since(released)
	var silence time.Duration
	for _, w := range o.watchers {
		silence = max(silence, w.silence(began))
		w.check()
	}
	if silence > unnoticed || told > unnoticed {
		t.Errorf("viewers heard nothing for %s, and of the end after %s", silence, told)
	}
	o.stored(thread.OutcomeFinished, names...)
	measured(t, "%d runs were accepted within %s; viewers heard nothing for at most %s, had all ends after %s; all were stored %s after they ended; for a lease of 4s, on %s and %s",
		runs, accepted.Round(time.Millisecond), silence.Round(time.Millisecond), told.Round(time.Millisecond), time.Since(released).Round(time.Millisecond), one.addr, two.addr)
}

// TestPostgresKilledWhileRunsAreStored kills Postgres when runs are in the middle of being stored; in some rounds the
// node that stores them, too.
func TestPostgresKilledWhileRunsAreStored(t *testing.T) {
	t.Parallel()
	const runs = 6
	server := pgtest.Start(t)
	o := withStores(t, redistest.Config{}, server.Database(t), "--lease", "3s")
	o.add()
	rng := rand.New(rand.NewPCG(14, 15))
	rounds := sized(4, 2)
	var longest time.Duration
	for round := range rounds {
		storing := o.add()
		var names []string
		for i := range runs {
			names = append(names, fmt.Sprintf("killed %d.%d", round, i))
			o.run(names[i], storing, o.nodes[0])
		}
		held := round%2 == 0
		if held { // in the middle of the transactions; otherwise anywhere
			o.hold(names)
		} else {
			o.finish(names...)
			<-time.After(time.Duration(rng.Int64N(int64(10 * time.Millisecond))))
		}
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		if round%4 < 2 {
			storing.kill()
		}
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		up := time.Now()
		if held {
			inPostgres(t, o.database, `DROP TRIGGER hold ON agent_runs`, `DROP FUNCTION hold`)
		}
		o.stored(thread.OutcomeFinished, names...)
		longest = max(longest, time.Since(up))
		o.nodes = o.nodes[:1]
	}
	measured(t, "%d rounds of %d runs each: all were stored, once, at most %s after Postgres was back", rounds, runs, longest.Round(time.Millisecond))
}

// hold lets runs end, and returns when their transactions wait in the middle.
func (o *ordeal) hold(names []string) {
	o.Helper()
	conn := inPostgres(o.T, o.database,
		`CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_advisory_xact_lock_shared(14); RETURN NEW; END'`,
		`CREATE TRIGGER hold BEFORE UPDATE ON agent_runs FOR EACH ROW WHEN (NEW.status = 'ended') EXECUTE FUNCTION hold()`,
		`SELECT pg_advisory_lock(14)`)
	o.finish(names...)
	eventually(o, patience, "the runs are being stored", func() bool {
		var n int
		err := conn.QueryRow(o.Context(), `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`).Scan(&n)
		return err == nil && n == len(names)
	})
}
