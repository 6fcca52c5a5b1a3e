package main_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/threadcast/threadcast/web/webtest"
)

// numbers is "0;1;2;" and so on.
func numbers(n int, sep string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d%s", i, sep)
	}
	return b.String()
}

// 100 viewers (in the short form 30) come at random moments of a run of 2,000 deltas, half of them go and come back. Every other one takes what
// is past raw. The viewer itself checks that positions only grow, without a hole.
func handoffHasNoGap(s *stage) {
	viewers := 100
	if !s.large() {
		viewers = 30
	}
	rng := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	var p progress
	var all []*viewer
	group, ctx := errgroup.WithContext(s.ctx)
	for i := range viewers {
		options := map[string]any{"replay": []string{"raw", "compact"}[i%2]}
		v := s.viewer("t1", options)
		all = append(all, v)
		come, stay := p.after(1+rng.IntN(1900)), rng.IntN(400)
		group.Go(func() error {
			select {
			case <-come:
			case <-ctx.Done():
				return ctx.Err()
			}
			if err := v.join(); err != nil {
				return err
			}
			if i < viewers/2 {
				leave := count(v.Viewer) + stay
				err := v.until(func(v *webtest.Viewer) bool { return count(v) >= leave || webtest.Ended("r1")(v) })
				if err != nil {
					return err
				}
				v.drop()
				if err := v.join(); err != nil {
					return err
				}
			}
			return v.until(webtest.Ended("r1"))
		})
	}
	first := s.watch("t1", raw)
	s.run("t1", "r1")
	s.must(first.until(p.watchedBy(webtest.Ended("r1"))))
	s.must(group.Wait())
	want := numbers(2000, ";")
	for i, v := range append(all, first) {
		if got := text(s, v.Run("r1").Events, "m1"); got != want {
			s.Errorf("viewer %d has %d bytes of text, not the %d expected: %.200q", i, len(got), len(want), got)
		}
	}
}

// Frames carry the positions of their first and last event; a viewer that is Exact insists that there are as many events
// as positions. 100 resumptions (in the short form 15) go over the socket, and over the API, which has the same
// coordinate.
func cursorsAreUnique(s *stage) {
	v := s.viewer("t1", raw)
	v.Exact = true
	s.must(v.join())
	s.run("t1", "r1")
	s.must(v.until(webtest.Ended("r1")))
	run := v.Run("r1")
	if len(run.Events) != 10_004 {
		s.Fatalf("there are %d events, not 10004", len(run.Events))
	}
	s.next().ended("t1", "r1")
	positions := 100
	if !s.large() {
		positions = 15
	}
	for range positions {
		k := rand.IntN(len(run.Events) + 1)
		after := fmt.Sprintf("1-%d", k)
		back := s.viewer("t1", raw)
		back.Cursor, back.Exact = after, true
		s.must(back.join())
		s.must(back.until(webtest.CaughtUp))
		same(s, "after "+after, back.Events(), run.Events[k:])
		back.drop()
		same(s, "over the API after "+after, allEvents(s.next().record("t1", after, "raw")), run.Events[k:])
	}
}

// One socket, four memberships in the same topic, one after the other. Frames are judged as they came.
func subscribingTwiceIsHarmless(s *stage) {
	client, frames := s.dialRaw()
	send := func(text string) { s.must(client.SendText([]byte(text))) }
	send(`["1","1","thread:t1","phx_join",{}]`)
	send(`["2","2","thread:t1","phx_join",{}]`)
	send(`["3","3","thread:t1","phx_join",{"after":"0-0"}]`)
	frames.await(s, "the third join is answered", func(f wireFrame) bool { return f.replies("3") })
	s.run("t1", "r1")
	frames.await(s, "20 events have come", func(f wireFrame) bool { return f.events() && f.to() >= 20 })
	last := frames.lastCursor("3")
	send(fmt.Sprintf(`["4","4","thread:t1","phx_join",{"after":%q}]`, last))
	frames.await(s, "the end has come", func(f wireFrame) bool { return f.terminal() })

	var got []json.RawMessage
	membership := ""
	for _, f := range frames.all() {
		if f.Event == "phx_reply" && (f.JoinRef == "3" || f.JoinRef == "4") {
			membership = f.JoinRef // from here on nothing of an earlier one may come
			if f.JoinRef == "4" {
				got = got[:upTo(s, last)]
			}
		}
		if !f.events() {
			continue
		}
		if f.JoinRef != membership {
			s.Errorf("an event of membership %s came after the answer to %s", f.JoinRef, membership)
		}
		got = append(got, f.batch.Events...)
	}
	s.next().ended("t1", "r1")
	same(s, "all memberships together", got, allEvents(s.next().record("t1", "", "raw")))
}

// upTo is how many events of run 1 there are up to a cursor.
func upTo(s *stage, cursor string) int {
	var n int
	if _, err := fmt.Sscanf(cursor, "1-%d", &n); err != nil {
		s.Fatalf("the cursor is %q", cursor)
	}
	return n
}

func secondRecoveryBringsNothingOld(s *stage) {
	v := s.watch("t1", nil)
	s.run("t1", "r1")
	await(s, s.agent.Mark("first"), patience, "the agent has sent ten deltas")
	s.must(v.until(has(12)))
	v.drop()
	s.agent.Release("go2")
	eventually(s, patience, "the agent has sent ten more", func() bool { return s.agent.Waiting("go3") == 1 })
	s.must(v.join())
	s.must(v.until(has(22)))
	if got := text(s, v.Run("r1").Events, "m1"); got != strings.Repeat("a", 10)+strings.Repeat("b", 10) {
		s.Errorf("after the first recovery the text is %q", got)
	}
	v.drop()
	s.must(v.join())
	s.must(v.until(webtest.CaughtUp))
	if n := count(v.Viewer); n != 22 || v.Frames == 0 {
		s.Errorf("the second recovery brought %d events", n-22)
	}
	s.agent.Release("go3")
	s.must(v.until(webtest.Ended("r1")))
	verify(s, "the viewer", v.Events())
}

// The retention is the smallest allowed, one second.
func connectingStartsNothing(s *stage) {
	v := s.watch("t1", nil)
	s.run("t1", "r1")
	s.must(v.until(webtest.Ended("r1")))
	s.next().ended("t1", "r1")
	s.awaitEmptyLog()
	for _, after := range []string{"0-0", "1-2"} {
		back := s.viewer("t1", raw)
		back.Cursor = after
		s.must(back.join())
		s.must(back.until(webtest.CaughtUp))
		same(s, "after "+after, back.Events(), v.Events()[upTo(s, strings.Replace(after, "0-", "1-", 1)):])
	}
	nobody := s.watch("never", nil)
	s.must(nobody.until(webtest.CaughtUp))
	if st := nobody.status(); st.Running || st.RunID != "" || count(nobody.Viewer) != 0 {
		s.Errorf("a thread that never was has %d events and stands at %+v", count(nobody.Viewer), st)
	}
	var p problem
	if code := s.next().do(http.MethodGet, threadPath("never"), nil, &p); code != http.StatusNotFound || p.Code != "not_found" {
		s.Errorf("the API answers %d %+v for a thread that never was", code, p)
	}
	if n := s.agent.Invocations(); n != 1 {
		s.Errorf("the agent was called %d times", n)
	}
}

// There are 50,000 deltas (in the short form 10,000). The smallest retention is one second: the stream of the run goes a
// second after its end, and not before. The viewer who comes back then is told to forget the run and takes it again,
// compacted.
func longRunIsNotTrimmed(s *stage) {
	deltas := 50_000
	if !s.large() {
		deltas = 10_000
		s.perform(strings.Replace(s.events, "50000", "10000", 1))
	}
	var p progress
	group := new(errgroup.Group)
	late, paused := s.viewer("t1", raw), s.watch("t1", nil)
	come := p.after(deltas - 1000)
	group.Go(func() error {
		<-come
		if err := late.join(); err != nil {
			return err
		}
		return late.until(webtest.Ended("r1"))
	})
	group.Go(func() error {
		if err := paused.until(has(100)); err != nil {
			return err
		}
		paused.drop()
		return nil
	})
	along := s.watch("t1", raw)
	s.run("t1", "r1")
	s.must(along.until(p.watchedBy(webtest.Ended("r1"))))
	s.must(group.Wait())
	s.next().ended("t1", "r1")
	s.awaitEmptyLog()
	s.must(paused.join())
	s.must(paused.until(webtest.Ended("r1")))
	if paused.Resets != 1 {
		s.Errorf("who paused was told %d times to forget the run", paused.Resets)
	}
	want := strings.Repeat("x", deltas)
	for name, events := range map[string][]json.RawMessage{
		"the viewer who read along": along.Events(), "the one who came late": late.Events(),
		"the one who paused": paused.Events(), "SQL": allEvents(s.next().record("t1", "", "compact")),
	} {
		if got := text(s, events, "m1"); got != want {
			s.Errorf("%s has %d x, not %d", name, len(got), deltas)
		}
	}
}

func acknowledgementHasAPosition(s *stage) {
	v := s.watch("t1", map[string]any{"from": "now"})
	var acc accepted
	s.must(v.push("run", runRequest{RunID: "r1", Messages: json.RawMessage("[]")}, &acc))
	v.drop()
	s.agent.Release("go")
	back := s.viewer("t1", nil)
	back.Cursor = acc.Cursor
	s.must(back.join())
	s.must(back.until(webtest.Ended("r1")))
	want := []string{"RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "RUN_FINISHED"}
	if got := types(s, back.Events()); !slices.Equal(got, want) {
		s.Errorf("after the position %s come %v", acc.Cursor, got)
	}
}

// Taking what is past compacted is the snapshot mode: the state so far comes as one snapshot, a text as one delta.
func latecomerRebuildsTheState(s *stage) {
	var p progress
	a, b := s.watch("t1", raw), s.viewer("t1", nil)
	half := p.after(202)
	group := new(errgroup.Group)
	group.Go(func() error {
		<-half
		if err := b.join(); err != nil {
			return err
		}
		return b.until(webtest.Ended("r1"))
	})
	s.run("t1", "r1")
	s.must(a.until(p.watchedBy(webtest.Ended("r1"))))
	s.must(group.Wait())
	messagesA, stateA := reduce(s, a.Events())
	messagesB, stateB := reduce(s, b.Events())
	if !sameJSON(s, stateA, stateB) || !sameJSON(s, encode(s, messagesA), encode(s, messagesB)) {
		s.Errorf("one viewer has\n%.300s\n%.300s\nand the other\n%.300s\n%.300s",
			stateA, encode(s, messagesA), stateB, encode(s, messagesB))
	}
	if n, m := count(a.Viewer), count(b.Viewer); m > n*2/3 {
		s.Errorf("the latecomer received %d events, and who was there from the start %d", m, n)
	}
	if !sameJSON(s, stateA, []byte(`{"n":199,"log":[`+strings.TrimSuffix(numbers(200, ","), ",")+`]}`)) {
		s.Errorf("the state is %.300s", stateA)
	}
}

func badCursorsGetTypedAnswers(s *stage) {
	v := s.watch("t1", nil)
	s.run("t1", "r1")
	s.must(v.until(webtest.Ended("r1")))
	s.next().ended("t1", "r1")
	s.must(s.watch("t2", nil).push("run", runRequest{RunID: "other", Messages: json.RawMessage("[]")}, nil))
	for name, test := range map[string]struct {
		after any
		want  string // the code, or how many events follow
	}{
		"empty":                      {"", "bad_cursor"},
		"a word":                     {"abc", "bad_cursor"},
		"negative":                   {"-1", "bad_cursor"},
		"without seq":                {"0", "bad_cursor"},
		"far ahead":                  {"99999999999999-0", "bad_cursor"},
		"ahead in the run":           {"1-99", "5 events"},
		"a megabyte":                 {strings.Repeat("9", 1<<20), "bad_cursor"},
		"a number":                   {12, "bad_cursor"},
		"an object":                  {map[string]any{}, "bad_cursor"},
		"null":                       {nil, "5 events"},
		"the start":                  {"0-0", "5 events"},
		"one that another has too":   {"1-2", "3 events"},
		"one of a longer-lived one":  {"2-1", "bad_cursor"},
		"the end of what there is":   {"1-6", "0 events"},
		"the place before the run":   {"1-0", "5 events"},
		"a leading zero":             {"01-2", "bad_cursor"},
		"more than 63 bits":          {"9223372036854775808-0", "bad_cursor"},
		"run zero":                   {"0-1", "bad_cursor"},
		"a sign":                     {"+1-2", "bad_cursor"},
		"with white space around it": {" 1-2", "bad_cursor"},
	} {
		for range 2 {
			if got := s.answerTo(test.after); got != test.want {
				s.Errorf("%s is answered with %q, not %q", name, got, test.want)
			}
			text, isText := test.after.(string)
			if !isText || len(text) > 1000 {
				continue
			}
			if got := s.answerOverHTTP(text); got != test.want {
				s.Errorf("over HTTP %s is answered with %q, not %q", name, got, test.want)
			}
		}
	}
}

// answerTo joins t1 after a position and says what the server made of it.
func (s *stage) answerTo(after any) string {
	s.Helper()
	client, err := webtest.Dial(s.ctx, s.next().url, nil)
	s.must(err)
	defer client.Drop()
	ch, err := client.Join(s.ctx, "thread:t1", map[string]any{"after": after})
	if code := webtest.Code(err); code != "" {
		if len(err.Error()) > 500 {
			s.Errorf("the refusal is %d bytes long", len(err.Error()))
		}
		return code
	}
	s.must(err)
	n := 0
	for {
		p, err := ch.Next(s.ctx)
		s.must(err)
		var b batch
		s.must(json.Unmarshal(p.Payload, &b))
		if n += len(b.Events); p.Event == "caught_up" {
			return fmt.Sprintf("%d events", n)
		}
		for _, data := range b.Events {
			if e := parse(s, data); e.ThreadID != "" && e.ThreadID != "t1" {
				s.Errorf("an event of %s came", e.ThreadID)
			}
		}
	}
}

func (s *stage) answerOverHTTP(after string) string {
	s.Helper()
	var page struct {
		problem
		Batches []batch `json:"batches"`
	}
	s.next().do(http.MethodGet, threadPath("t1")+"/events?after="+url.QueryEscape(after), nil, &page)
	if page.Code != "" {
		return page.Code
	}
	return fmt.Sprintf("%d events", len(allEvents(page.Batches)))
}

func returningViewerLearnsTheEnd(s *stage) {
	v := s.watch("t1", nil)
	s.run("t1", "r1")
	s.must(v.until(has(3)))
	v.drop()
	s.agent.Release("go")
	s.next().ended("t1", "r1")
	s.must(v.join())
	s.must(v.until(webtest.CaughtUp))
	want := []string{
		"RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "RUN_FINISHED",
	}
	if got := types(s, v.Events()); !slices.Equal(got, want) || text(s, v.Events(), "m1") != "xy" {
		s.Errorf("before and after the pause came %v", got)
	}
	s.checkFinished(v)
	v.drop()
	s.must(v.join())
	s.must(v.until(webtest.CaughtUp))
	if n := count(v.Viewer); n != len(want) {
		s.Errorf("after the terminal come %d events", n-len(want))
	}
	s.checkFinished(v)
	fresh := s.watch("t1", nil)
	s.must(fresh.until(webtest.CaughtUp))
	if text(s, fresh.Events(), "m1") != "xy" || !fresh.Run("r1").Terminal() {
		s.Errorf("without a cursor come %v", types(s, fresh.Events()))
	}
	s.checkFinished(fresh)
	if info := s.next().thread("t1"); info.State != "finished" || info.Status.Running {
		s.Errorf("the API says %+v", info)
	}
}

// checkFinished checks what a viewer is told when it joins, and when it asks.
func (s *stage) checkFinished(v *viewer) {
	s.Helper()
	var joined status
	s.must(json.Unmarshal(v.Channel().Joined(), &joined))
	for _, st := range []status{joined, v.status()} {
		if st.Running || st.RunID != "r1" || st.Outcome != "finished" {
			s.Errorf("the viewer is told %+v", st)
		}
	}
}
