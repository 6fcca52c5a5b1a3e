package main_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/threadcast/threadcast/persistence/pgtest"
	"github.com/threadcast/threadcast/persistence/redislog/redistest"
	"github.com/threadcast/threadcast/persistence/thread"
)

// unnoticed is how long a viewer of a steady agent may hear nothing while Postgres is away: less than Postgres takes for
// anything. Under the race detector, on a busy machine, a viewer waits longer whatever happens.
var unnoticed = func() time.Duration {
	if underRace {
		return 3 * time.Second
	}
	return time.Second
}()

// TestRunsOutliveTheirPostgres takes Postgres away in mid run. Viewers do not notice; runs go on, end, and are stopped; a node
// dies; and what could not be stored is stored once, by whoever is there, when Postgres is back.
func TestRunsOutliveTheirPostgres(t *testing.T) {
	for _, way := range []struct {
		name     string
		away     int // seconds
		down, up func(*pgtest.Server) error
		within   time.Duration // calls fail
	}{
		{"killed", sized(60, 5), (*pgtest.Server).Kill, (*pgtest.Server).Start, failsWithin},
		// A new connection is given up after five seconds.
		{"frozen", sized(15, 0), (*pgtest.Server).Pause, (*pgtest.Server).Resume, failsWithin + 3*time.Second},
	} {
		if way.away == 0 {
			continue
		}
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			server := pgtest.Start(t)
			o := withStores(t, redistest.Config{}, server.Database(t), "--lease", "4s")
			c := begin(o)
			fine(t, way.down(server))
			down := time.Now()
			c.goOn(way.within)
			<-time.After(time.Until(down.Add(time.Duration(way.away) * time.Second)))
			silence := c.judge(down)
			fine(t, way.up(server))
			up := time.Now()
			c.end()
			measured(t, "away for %s: viewers heard nothing for at most %s, %d memberships ended; calls failed after at most %s, a stop from another node took %s; everything was stored %s after it was back",
				up.Sub(down).Round(time.Millisecond), silence.Round(time.Millisecond), o.sentAway(), c.slowest.Round(time.Millisecond),
				c.stopped.Round(time.Millisecond), time.Since(up).Round(time.Millisecond))
		})
	}
}

func fine(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// offline is three nodes whose database goes away, and the viewers on two of them.
type offline struct {
	*ordeal
	ready              *readiness
	on, during, halted []*watcher // of runs that go on, end, and are stopped meanwhile
	finished, cut      []*watcher // of runs whose node dies when they have ended, and before
	slowest, stopped   time.Duration
}

// begin starts the nodes and the runs.
func begin(o *ordeal) *offline {
	one, two, three := o.add(), o.add(), o.add()
	o.next("past", "r1", one)
	c := &offline{ordeal: o, on: o.run("goes on", one, two), during: o.run("ends", one, two), halted: o.run("is stopped", one, two)}
	o.start("ends and loses its node", three)
	o.start("loses its node", three)
	c.finished = []*watcher{o.watch("ends and loses its node", one), o.watch("ends and loses its node", two)}
	c.cut = []*watcher{o.watch("loses its node", one), o.watch("loses its node", two)}
	c.ready = o.askReady()
	return c
}

// goOn does what can be done without the database, and tries what cannot.
func (c *offline) goOn(within time.Duration) {
	c.Helper()
	c.ready.awaitRed(c.nodes[:2]...)
	for call, said := range c.entryPoints(c.nodes[1], "past") {
		c.slowest = max(c.slowest, said.took)
		said.check(c.T, call, verdict{http.StatusServiceUnavailable, "unavailable", within})
	}
	c.finish("ends", "ends and loses its node")
	asked := time.Now()
	if code := c.nodes[1].do(http.MethodPost, threadPath("is stopped")+"/stop", nil, nil); code != http.StatusOK {
		c.Errorf("stop from another node was answered %d", code)
	}
	c.stopped = time.Since(asked)
	for _, w := range c.halted {
		w.ended()
	}
	c.nodes[2].kill()
}

// judge checks that viewers have noticed nothing since the database went away, and returns for how long they heard nothing.
func (c *offline) judge(down time.Time) (silence time.Duration) {
	c.Helper()
	for _, w := range c.on {
		silence = max(silence, w.silence(down))
	}
	if silence > unnoticed {
		c.Errorf("viewers heard nothing for %s", silence)
	}
	if n := c.sentAway(); n > 0 {
		c.Errorf("%d memberships ended", n)
	}
	return silence
}

// end lets what is left end, and checks everything.
func (c *offline) end() {
	c.Helper()
	for _, w := range c.cut {
		w.cutOff("lost")
	}
	c.finish("goes on")
	c.stored(thread.OutcomeStopped, "is stopped")
	c.stored(thread.OutcomeLost, "loses its node")
	c.stored(thread.OutcomeFinished, "past", "goes on", "ends", "ends and loses its node")
	for _, w := range slices.Concat(c.on, c.during, c.finished) {
		w.check()
	}
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
	runs, millis := sized(8, 3), sized(2000, 500)
	o := newOrdeal(t, "--lease", "4s")
	o.add()
	o.add()
	inPostgres(t, o.database,
		fmt.Sprintf(`CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(%d / 1000.0); RETURN NULL; END'`, millis),
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
	measured(t, "%d runs were accepted within %s; viewers heard nothing for at most %s, had all ends after %s; all were stored %s after they ended; the lease is 4s",
		runs, accepted.Round(time.Millisecond), silence.Round(time.Millisecond), told.Round(time.Millisecond), time.Since(released).Round(time.Millisecond))
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
