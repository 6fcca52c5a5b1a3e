package terminal_test

import (
	"strings"
	"testing"

	"github.com/threadcast/threadcast/cmd/threadcast/terminal"
)

func TestTailShowsWhatIsThereAndWhatComes(t *testing.T) {
	s := open(t, "", said(2), held(2))
	s.run("t", "r1", "Hello", "")
	s.saved("t", "r1")
	c := s.tail(nil, terminal.Tailing{Thread: "t"})
	s.shows(&c.out, "finished\n")
	s.run("t", "r2", "And?", "")
	s.shows(&c.out, "And?\nw0 w1 ")
	s.agent.Release("go")
	s.eventually("the end", func() bool { return strings.Count(c.out.String(), "finished\n") == 2 })
	c.stop()
	c.ends(0)
	want := "run      r1\nuser     Hello\nw0 w1 \nfinished\n\nrun      r2\nuser     And?\nw0 w1 w0 w1 \nfinished\n"
	if c.out.String() != want || c.err.String() != "" {
		t.Errorf("it wrote %q and %q", &c.out, &c.err)
	}
}

func TestTailResumesByItself(t *testing.T) {
	s := open(t, "", held(3))
	s.run("t", "r1", "Hello", "")
	c := s.tail(nil, terminal.Tailing{Thread: "t", Raw: true})
	s.shows(&c.out, "w2 ")
	s.conns.cut()
	s.shows(&c.err, "threadcast: the connection is lost; reconnecting\nthreadcast: connected again\n")
	s.agent.Release("go")
	s.shows(&c.out, "finished\n")
	if got := c.out.String(); !strings.Contains(got, "Hello\nw0 w1 w2 w0 w1 w2 \nfinished\n") {
		t.Errorf("it wrote %q", got)
	}
}

func TestTailOnATerminalSaysThatItReconnects(t *testing.T) {
	s := open(t, "", held(1))
	s.run("t", "r1", "Hello", "")
	c := s.tail(func(c *terminal.Config) { c.Err, c.OutTerminal, c.ErrTerminal = c.Out, true, true }, terminal.Tailing{Thread: "t", Raw: true})
	s.shows(&c.out, "w0 ")
	s.conns.cut()
	s.shows(&c.out, "w0 \nthe connection is lost; reconnecting\r\x1b[K")
	s.agent.Release("go")
	s.shows(&c.out, "w0 \nfinished\n")
}

func TestTailShowsARunAgainAfterAReset(t *testing.T) {
	s := open(t, "", held(2), said(1))
	s.run("t", "r1", "Hello", "")
	c := s.tail(nil, terminal.Tailing{Thread: "t"})
	s.shows(&c.out, "w1 ")
	s.run("t", "r2", "No, this", `,"onBusy":"replace"`)
	s.shows(&c.out, "finished\n")
	out := c.out.String()
	if !strings.Contains(out, "reset    forget run r1: it follows again, unless it was replaced\n") || !strings.HasSuffix(out, "user     No, this\nw0 \nfinished\n") {
		t.Errorf("it wrote %q", out)
	}
	once := s.tail(nil, terminal.Tailing{Thread: "t", Once: true})
	once.ends(0)
	if got := once.out.String(); !strings.HasPrefix(got, "run      r2\n") {
		t.Errorf("without the run that was replaced it is %q", got)
	}
}

func TestTailBeginsWhereItIsTold(t *testing.T) {
	s := open(t, "", said(2), held(1))
	s.run("t", "r1", "Hello", "")
	s.saved("t", "r1")
	t.Run("after a cursor", func(t *testing.T) {
		all := s.tail(func(c *terminal.Config) { c.JSON = true }, terminal.Tailing{Thread: "t", Once: true, Raw: true})
		all.ends(0)
		rest := s.tail(func(c *terminal.Config) { c.JSON = true }, terminal.Tailing{Thread: "t", Once: true, Raw: true, After: "1-3"})
		rest.ends(0)
		lines := strings.SplitAfter(all.out.String(), "\n")
		if len(lines) < 6 || !strings.Contains(lines[2], `"cursor":"1-3"`) || rest.out.String() != strings.Join(lines[3:], "") {
			t.Errorf("of\n%s\nthere follows\n%s", &all.out, &rest.out)
		}
	})
	t.Run("now", func(t *testing.T) {
		c := s.tail(func(c *terminal.Config) { c.ErrTerminal = true }, terminal.Tailing{Thread: "t", Now: true})
		s.shows(&c.err, "waiting for a run")
		s.run("t", "r2", "And?", "")
		s.shows(&c.out, "w0 ")
		if strings.Contains(c.out.String(), "Hello") {
			t.Errorf("it shows %q", &c.out)
		}
		s.agent.Release("go")
	})
	for name, after := range map[string]string{"no cursor": "x", "one that never was": "99-1"} {
		t.Run(name, func(t *testing.T) {
			c := s.tail(nil, terminal.Tailing{Thread: "t", After: after})
			if err := c.ends(1); err == nil || !strings.Contains(err.Error(), "cursor") {
				t.Errorf("it says %v", err)
			}
		})
	}
}

func TestTailEndsWithItsThread(t *testing.T) {
	s := open(t, "", said(1))
	s.run("t", "r1", "Hello", "")
	s.saved("t", "r1")
	c := s.tail(nil, terminal.Tailing{Thread: "t"})
	s.shows(&c.out, "finished\n")
	s.call("DELETE", "/api/threads/t", "")
	if err := c.ends(1); err == nil || err.Error() != "the thread was deleted" {
		t.Errorf("it says %v", err)
	}
}

func TestTailTellsHowMuchHasCome(t *testing.T) {
	s := open(t, "", said(3))
	s.run("t", "r1", "Hello", "")
	s.saved("t", "r1")
	c := s.tail(func(c *terminal.Config) { c.ErrTerminal = true }, terminal.Tailing{Thread: "t", Once: true, Raw: true})
	c.ends(0)
	if got := c.err.String(); !strings.Contains(got, "\r\x1b[Kloading\r\x1b[Kloading: ") || !strings.HasSuffix(got, " events so far\r\x1b[K") {
		t.Errorf("it says %q", got)
	}
}

func TestTailOfAnEmptyThreadSaysSoOnATerminal(t *testing.T) {
	s := open(t, "")
	c := s.tail(func(c *terminal.Config) { c.ErrTerminal = true }, terminal.Tailing{Thread: "never used"})
	s.shows(&c.err, "nothing here yet; waiting for a run")
}

func TestServerThatCannotBeReached(t *testing.T) {
	s := open(t, "")
	c := s.tail(func(c *terminal.Config) { c.Server = "http://127.0.0.1:1" }, terminal.Tailing{Thread: "t"})
	if err := c.ends(3); err == nil || err.Error() != "cannot reach http://127.0.0.1:1: connect: connection refused" {
		t.Errorf("it says %v", err)
	}
}

func TestTokenSaysWhoCalls(t *testing.T) {
	s := open(t, "secret", said(1))
	with := func(c *terminal.Config) { c.Token = "secret" }
	asked := s.ask(with, terminal.Question{Text: "Hello", Thread: "t"})
	asked.ends(0)
	once := s.tail(with, terminal.Tailing{Thread: "t", Once: true})
	once.ends(0)
	if !strings.Contains(once.out.String(), "Hello") {
		t.Errorf("it wrote %q", &once.out)
	}
	for name, c := range map[string]*command{
		"tail": s.tail(nil, terminal.Tailing{Thread: "t"}), "ask": s.ask(nil, terminal.Question{Text: "Hello"}),
	} {
		t.Run(name+" without it is refused", func(t *testing.T) {
			if err := c.ends(1); err == nil {
				t.Error("it was let in")
			}
		})
	}
}
