//go:build integration

package main_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/redislog/redistest"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agenttest"
)

// redisAt is the flags for a Redis at another address.
func redisAt(addr string) []string { return []string{"--redis", "redis://" + addr} }

// A network that swallows everything between a node and Redis. The viewers of that node hear nothing of runs elsewhere and get
// all of it afterwards; its own runs wait, as long as their lease lasts.
func TestABlackHoleBeforeOneNode(t *testing.T) {
	t.Parallel()
	const lease = 12 * time.Second
	o := newOrdeal(t, "--lease", lease.String())
	link := redistest.NewLink(t, o.redis.Addr())
	one, two := o.add(), o.add(redisAt(link.Addr())...)
	o.run("elsewhere", one, two)
	o.run("here", two, one)
	o.next("past", "r1", one)
	idle := o.watch("later", two)
	ready := o.askReady()

	link.Freeze()
	down := time.Now()
	o.start("later", one)
	ready.awaitRed(two)
	for call, said := range o.entryPoints(two, "past") {
		if call != "list" {
			said.check(t, call, verdict{http.StatusServiceUnavailable, "unavailable", failsWithin})
		}
	}
	var others time.Duration
	for _, w := range o.watchers[:1] { // the run of the other node, on that node
		others = max(others, w.silence(down))
	}
	link.Thaw()
	up := time.Now()
	var back []time.Duration
	for _, w := range []*watcher{o.watchers[1], o.watchers[2], o.watchers[3], idle} {
		back = append(back, w.after(up))
	}
	red, green := ready.turned(two, down, up)
	if took := percentile(back, 1); took > 10*time.Second {
		t.Errorf("events went on %s after the network was back", took)
	}
	if others > time.Second {
		t.Errorf("on the other node nothing came for %s", others)
	}
	o.finish("elsewhere", "here", "later")
	for _, w := range o.watchers {
		w.check()
	}
	o.stored(thread.OutcomeFinished, "elsewhere", "here", "later")
	measured(t, "a black hole of %s: not ready after %s; events went on after p50 %s, longest %s, ready after %s; on the other node nothing came for at most %s; %d memberships ended, %d resets",
		up.Sub(down).Round(time.Millisecond), red.Round(time.Millisecond), percentile(back, 0.5).Round(time.Millisecond),
		percentile(back, 1).Round(time.Millisecond), green.Round(time.Millisecond), others.Round(time.Millisecond), o.sentAway(), o.allResets())
}

// A black hole that outlasts the lease of a run: the node behind it gives the run up and cancels the agent, another node ends
// it as lost, and what its viewers had stays true on both.
func TestABlackHoleLongerThanTheLease(t *testing.T) {
	t.Parallel()
	const lease = 3 * time.Second
	o := newOrdeal(t, "--lease", lease.String())
	link := redistest.NewLink(t, o.redis.Addr())
	one, two := o.add(), o.add(redisAt(link.Addr())...)
	ws := o.run("a", two, one)
	near, far := ws[0], ws[1] // of the black hole

	link.Freeze()
	down := time.Now()
	hungUp(t, o.agents, "r1", lease+2*time.Second)
	cancelled := time.Since(down)
	far.ended()
	ended := time.Since(down)
	if ended > lease+5*time.Second {
		t.Errorf("the run ended after %s, with a lease of %s", ended, lease)
	}
	accepted := o.next("a", "r2", one)
	link.Thaw()
	up := time.Now()
	near.ended()
	told := time.Since(up)
	o.stored(thread.OutcomeLost, "a")
	for _, w := range ws {
		w.cutOff("lost")
	}
	measured(t, "lease %s: the agent was cancelled after %s, the run ended after %s, the next one was accepted after another %s; the viewer behind the black hole had the end %s after that was over",
		lease, cancelled.Round(time.Millisecond), ended.Round(time.Millisecond), accepted.Round(time.Millisecond), told.Round(time.Millisecond))
}

// The primary dies, or falls silent, and Sentinel makes the replica the primary (F131). Nobody loses anything: what the
// replica did not have is written again by the nodes that run the agents.
func TestAFailover(t *testing.T) {
	for name, down := range map[string]func(*testing.T, *redistest.Watched){
		"of a primary that is killed": func(_ *testing.T, w *redistest.Watched) { w.Primary.Kill() },
		"of a primary that is silent": func(_ *testing.T, w *redistest.Watched) { w.Primary.Pause() },
		"to a replica that is behind": fallBehind, // F138
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			watched := redistest.RunSentinel(t)
			_, port, err := net.SplitHostPort(watched.Sentinel)
			if err != nil {
				t.Fatal(err)
			}
			where := url.URL{Scheme: "redis", Host: "127.0.0.1:" + port, RawQuery: url.Values{"master_name": {watched.Name}}.Encode()}
			o := newOrdeal(t, "--lease", "12s", "--redis", where.String())
			one, two := o.add(), o.add()
			o.run("a", one, two)
			o.run("b", two, one)
			idle := []*watcher{o.watch("later", one), o.watch("later", two)}
			live := o.watchers[:4]
			ready := o.askReady()

			down(t, watched)
			away := time.Now()
			eventually(t, patience, "the replica is the primary", func() bool { return isPrimary(t, watched.Replica) })
			up := time.Now()
			var back []time.Duration
			for _, w := range live {
				back = append(back, w.after(up))
			}
			if took := percentile(back, 1); took > 10*time.Second {
				t.Errorf("events went on %s after there was a new primary", took)
			}
			accepted := o.start("later", two)
			for _, w := range idle {
				w.await("a run that begins later is seen", func() bool { return len(w.events) > 5 })
			}
			var reds, greens []time.Duration
			for _, n := range o.nodes {
				red, green := ready.turned(n, away, up)
				reds, greens = append(reds, red), append(greens, green)
			}
			watched.Primary.Continue()
			o.finish("a", "b", "later")
			for _, w := range o.watchers {
				w.check()
			}
			o.stored(thread.OutcomeFinished, "a", "b", "later")
			measured(t, "a new primary after %s; not ready after %s; after the new primary was there events went on after p50 %s, longest %s, a new run was accepted after %s, ready after %s; %d memberships ended, %d resets",
				up.Sub(away).Round(time.Millisecond), percentile(reds, 1).Round(time.Millisecond), percentile(back, 0.5).Round(time.Millisecond),
				percentile(back, 1).Round(time.Millisecond), accepted.Round(time.Millisecond), percentile(greens, 1).Round(time.Millisecond), o.sentAway(), o.allResets())
		})
	}
}

// fallBehind kills the primary when its replica has not followed for a second.
func fallBehind(t *testing.T, w *redistest.Watched) {
	c := w.Replica.Client()
	defer func() { _ = c.Close() }()
	if err := errors.Join(
		c.ConfigSet(t.Context(), "masteruser", "nobody").Err(), c.ConfigSet(t.Context(), "masterauth", "wrong").Err(),
		c.ClientKillByFilter(t.Context(), "TYPE", "master").Err(),
	); err != nil {
		t.Fatal(err)
	}
	<-time.After(time.Second)
	w.Primary.Kill()
}

func isPrimary(t *testing.T, s *redistest.Server) bool {
	c := s.Client()
	defer func() { _ = c.Close() }()
	role, err := c.Do(t.Context(), "ROLE").Slice()
	return err == nil && len(role) > 0 && role[0] == "master"
}

// Redis may use no more memory. Runs end by the name of that, with what was taken until then and without a hole; when
// what has ended is gone from the log, there is room for others.
func TestAFullRedis(t *testing.T) {
	t.Parallel()
	const most = 24 << 20
	o := withStores(t, redistest.Config{Args: []string{"--maxmemory", strconv.Itoa(most)}}, "", "--lease", "4s", "--retention", "1s")
	big := `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"#{i};` + strings.Repeat("x", 64<<10) + `"}`
	o.agents.Handle("steady", append(emits(begins, opens), agenttest.RepeatUntil("never", big, pace)))
	one, two := o.add(), o.add()
	ready := o.askReady()
	ws := o.run("a", one, two)
	for _, w := range ws {
		w.cutOff("log_full")
	}
	full := time.Now()
	o.stored(thread.OutcomeFailed, "a")
	tries := 0
	for state := ""; state != "finished"; tries++ {
		run := fmt.Sprintf("next%d", tries)
		o.next("b", run, two)
		state = two.ended("b", run).State
	}
	measured(t, "%d events of 64 KiB were taken with %d MiB of memory; a run finished again after %s, the %d. that was tried; ready all the time: %t",
		len(ws[0].events), most>>20, time.Since(full).Round(time.Millisecond), tries, ready.never(one))
}
