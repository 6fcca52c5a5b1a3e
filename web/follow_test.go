package web_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/threadcast/threadcast/hub"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agenttest"
)

func TestFollowingAThread(t *testing.T) {
	const events = "/agui/threads/t/events"
	t.Run("that has not begun", func(t *testing.T) {
		s := open(t, plan{agent: agenttest.New(said(1, 0))})
		stream := s.stream("GET", events, "")
		s.start("t", "r1")
		s.start2("t", "r2")
		want := "1-1=RUN_STARTED 1-2=TEXT_MESSAGE_START 1-3=0 1-4=TEXT_MESSAGE_END 1-5=RUN_FINISHED 2-1=RUN_STARTED"
		if got := brief(s.take(stream, 6)); got != want {
			t.Errorf("got %s", got)
		}
	})
	t.Run("from the start, compacted", func(t *testing.T) {
		s := open(t, plan{agent: agenttest.New(said(3, 0))})
		s.finish("t", "r1")
		want := "-=RUN_STARTED -=TEXT_MESSAGE_START -=0 1 2 -=TEXT_MESSAGE_END 1-8=RUN_FINISHED"
		if got := brief(s.rest(s.stream("GET", events+"?until=idle", ""))); got != want {
			t.Errorf("got %s", got)
		}
	})
	t.Run("event by event", func(t *testing.T) {
		s := open(t, plan{agent: agenttest.New(said(3, 0))})
		s.finish("t", "r1")
		if got := brief(s.rest(s.stream("GET", events+"?until=idle&replay=raw", ""))); got != whole {
			t.Errorf("got %s", got)
		}
	})
	t.Run("from where the client is, which the header knows best", func(t *testing.T) {
		s := open(t, plan{agent: agenttest.New(said(3, 0))})
		s.finish("t", "r1")
		for _, stream := range []string{"?after=1-5", "?after=1-1#1-5"} {
			query, header, _ := strings.Cut(stream, "#")
			got := brief(s.rest(s.stream("GET", events+query+"&until=idle", "", "Last-Event-ID", header)))
			if got != "1-6=TEXT_MESSAGE_END 1-7=RUN_FINISHED" {
				t.Errorf("%s: got %s", stream, got)
			}
		}
	})
	t.Run("whose cursor is no more brings a reset", func(t *testing.T) {
		s := open(t, plan{agent: agenttest.New(said(3, 0))})
		s.finish("t", "r1")
		s.lose("t", 1)
		want := `1-0=reset{"runId":"r1","from":"1-0"} -=RUN_STARTED -=TEXT_MESSAGE_START -=0 1 2 -=TEXT_MESSAGE_END 1-8=RUN_FINISHED`
		if got := brief(s.rest(s.stream("GET", events+"?until=idle&after=1-4", ""))); got != want {
			t.Errorf("got %s", got)
		}
	})
	t.Run("tells how soon to come back", func(t *testing.T) {
		s := open(t, plan{})
		if e, err := s.stream("GET", events, "").Next(); err != nil || e.Retry != "1000" {
			t.Errorf("got %+v, %v", e, err)
		}
	})
	t.Run("ends when it is deleted", func(t *testing.T) {
		s := open(t, plan{agent: agenttest.New(said(1, 0))})
		s.finish("t", "r1")
		stream := s.stream("GET", events, "")
		s.take(stream, 5)
		s.request("DELETE", "/api/threads/t", "")
		if got := brief(s.rest(stream)); got != "-=thread_deleted{}" {
			t.Errorf("got %s", got)
		}
	})
	t.Run("leaves out what was replaced", func(t *testing.T) {
		s := open(t, plan{agent: agenttest.New(held(1), said(1, 0))})
		s.take(s.stream("POST", "/agui/demo", input("t", "r1")), 3)
		s.rest(s.stream("POST", "/agui/demo?onBusy=replace", input("t", "r2")))
		s.saved("t", "r2")
		if got := brief(s.rest(s.stream("GET", events+"?until=idle", ""))); strings.Contains(got, "1-") {
			t.Errorf("got %s", got)
		}
		if got := brief(s.rest(s.stream("GET", events+"?until=idle&discarded=include", ""))); !strings.Contains(got, "1-6=RUN_FINISHED") {
			t.Errorf("with all that was: %s", got)
		}
	})
}

// lose takes a finished run out of the live log, and waits until nobody remembers it from there.
func (s *site) lose(id string, number uint64) {
	s.Helper()
	if err := s.live.Drop(s.Context(), thread.ID(id), number, 0); err != nil {
		s.Fatal(err)
	}
	for ctx := within(s.T); s.hub.Watched() > 0; {
		if ctx.Err() != nil {
			s.Fatal("somebody still watches")
		}
		<-time.After(time.Millisecond)
	}
}

// start2 starts a run as soon as the thread takes one.
func (s *site) start2(id, run string) {
	s.Helper()
	s.rest(s.stream("POST", "/agui/demo?onBusy=enqueue", input(id, run)))
}

func TestFollowingUntilIdle(t *testing.T) {
	const events = "/agui/threads/t/events?until=idle&replay=raw"
	t.Run("ends at once where nothing ever was", func(t *testing.T) {
		s := open(t, plan{})
		if got := s.rest(s.stream("GET", events, "")); len(got) > 0 {
			t.Errorf("got %v", got)
		}
	})
	t.Run("waits for the active run, and for those in the queue", func(t *testing.T) {
		agent := agenttest.New(held(3), said(1, 0))
		s := open(t, plan{agent: agent})
		s.take(s.stream("POST", "/agui/demo", input("t", "r1")), 3)
		s.stream("POST", "/agui/demo?onBusy=enqueue", input("t", "r2"))
		stream := s.stream("GET", events, "")
		s.take(stream, 5)
		agent.Release("go")
		got := brief(s.rest(stream))
		if !strings.HasPrefix(got, "1-6=TEXT_MESSAGE_END 1-7=RUN_FINISHED 2-1=") || !strings.HasSuffix(got, "2-5=RUN_FINISHED") {
			t.Errorf("got %s", got)
		}
	})
	t.Run("of which nothing is missing is no content", func(t *testing.T) {
		s := open(t, plan{agent: agenttest.New(said(3, 0))})
		s.finish("t", "r1")
		for _, at := range []string{"1-7", "1-8"} {
			response, err := s.ask("GET", events+"&after="+at, "")
			if err != nil || response.StatusCode != 204 {
				t.Errorf("%s: %v, %v", at, response, err)
			}
		}
	})
}

func TestAPositionThatIsAheadIsNotTheEnd(t *testing.T) {
	for _, until := range []string{"", "&until=idle"} {
		t.Run("follow"+until, func(t *testing.T) {
			s := open(t, plan{agent: agenttest.New(said(3, 0))})
			s.finish("t", "r1")
			stream := s.stream("GET", "/agui/threads/t/events?after=1-9999"+until, "")
			if got := brief(s.take(stream, 1)); got != `1-0=reset{"runId":"r1","from":"1-0"}` {
				t.Errorf("got %s", got)
			}
			for _, path := range []string{"t/events?after=2-0", "t/events?after=9-99", "never/events?after=1-5"} {
				if response, err := s.ask("GET", "/agui/threads/"+path+until, ""); err != nil || response.StatusCode != 400 {
					t.Errorf("%s: %v, %v", path, response, err)
				}
			}
		})
	}
	t.Run("run", func(t *testing.T) {
		s := open(t, plan{agent: agenttest.New(said(3, 0))})
		s.finish("t", "r1")
		stream := s.stream("POST", "/agui/demo", input("t", "r1"), "Last-Event-ID", "1-9999")
		got := brief(s.rest(stream))
		if !strings.HasPrefix(got, `1-0=reset{"runId":"r1","from":"1-0"}`) || !strings.HasSuffix(got, "=RUN_FINISHED") {
			t.Errorf("got %s", got)
		}
	})
}

func TestAStreamWhoseStorageFailsIsCut(t *testing.T) {
	agent := agenttest.New(held(1))
	log := frail{cut: make(chan error)}
	s := open(t, plan{agent: agent, log: func(l hub.Log) hub.Log { log.Log = l; return log }})
	stream := s.stream("POST", "/agui/demo", input("t", "r1"))
	s.take(stream, 3)
	log.cut <- thread.ErrUnavailable
	if e, err := stream.Event(); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("got %+v, %v", e, err)
	}
	if !strings.Contains(s.log.String(), "unavailable") {
		t.Errorf("the log does not tell: %s", s.log)
	}
	agent.Release("go")
}
