package terminal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/threadcast/threadcast/cmd/threadcast/client"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/web/wire"
)

// Tailing says what of a thread [Tail] shows.
type Tailing struct {
	Thread string
	After  string // a cursor; everything if it is empty
	Now    bool   // only what comes from now on
	Raw    bool   // event by event, as long as the server has them
	Once   bool   // end when everything is shown that is there
}

// Tail shows what is in a thread and what comes, until ctx ends, which is no error. It reconnects by itself, and goes on where
// it was. For the errors see [ExitCode].
func Tail(ctx context.Context, c Config, t Tailing) error {
	f := &follower{nodes: c.nodes(), thread: t.Thread, now: t.Now, raw: t.Raw}
	defer f.nodes.Close()
	if t.After != "" {
		after, err := thread.ParseCursor(t.After)
		if err != nil {
			return sorry("%q is not a cursor", t.After)
		}
		f.pos = after
	}
	w := newWatch(c, f, newScreen(c.Output, false))
	w.once = t.Once
	w.status("connecting to " + line(c.Server))
	err := w.all(ctx)
	w.status("")
	w.endLine(w.out)
	if flushed := w.flush(); err == nil {
		err = flushed
	}
	if errors.Is(err, errEnough) || ctx.Err() != nil {
		return nil
	}
	return c.explain(err)
}

// errEnough ends a watch that has shown what it should.
var errEnough = errors.New("all is shown")

// watch shows the facts of a follower.
type watch struct {
	*screen
	view     *view
	lines    *lines // in place of the view, if it is not nil
	follower *follower
	once     bool

	loading bool      // what comes was there before
	count   int       // how much of it has come
	told    time.Time // when that was shown
	joined  bool      // there has been a connection
	lost    bool      // there is none now
	shown   bool      // something has been shown
}

func newWatch(c Config, f *follower, s *screen) *watch {
	f.facts = make(chan fact)
	w := &watch{screen: s, view: newView(s), follower: f, loading: true}
	w.view.full = c.Full
	if c.JSON {
		w.lines = &lines{s}
	}
	return w
}

// start begins to follow. The channel tells why that ended; stop ends it, and waits.
func (w *watch) start(ctx context.Context) (over <-chan error, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		ended <- w.follower.follow(ctx)
	}()
	return ended, func() {
		cancel()
		<-gone
	}
}

// all shows everything that comes.
func (w *watch) all(ctx context.Context) error {
	over, stop := w.start(ctx)
	defer stop()
	for {
		if err := w.flush(); err != nil {
			return err
		}
		select {
		case err := <-over:
			return err
		case f := <-w.follower.facts:
			if err := w.take(f); err != nil {
				return err
			}
		}
	}
}

// take shows a fact.
func (w *watch) take(f fact) error {
	switch f.event {
	case wire.EventJoin:
		w.connected()
	case eventLost:
		w.disconnected()
	case wire.EventEvents:
		w.batch(f.step)
	case wire.EventReset:
		w.reset(f.step)
	case wire.EventCaughtUp:
		return w.caughtUp(f.step)
	}
	return nil
}

func (w *watch) batch(s client.Step) {
	if w.lines != nil {
		w.lines.batch(s)
	} else {
		for _, event := range s.Events {
			w.view.event(event)
		}
	}
	w.shown = true
	if w.loading {
		w.count += len(s.Events)
		w.progress()
	}
}

// progress tells now and then how much has come.
func (w *watch) progress() {
	if time.Since(w.told) < 100*time.Millisecond {
		return
	}
	w.told = time.Now()
	w.status(fmt.Sprintf("loading: %d events so far", w.count))
}

func (w *watch) reset(s client.Step) {
	if w.lines != nil {
		w.lines.reset(s)
		return
	}
	w.view.reset()
	if s.RunID == "" {
		w.view.labelled("reset", yellow, "forget what is above: the thread follows again from its beginning")
		return
	}
	w.view.labelled("reset", yellow, fmt.Sprintf("forget run %s: it follows again, unless it was replaced", line(string(s.RunID))))
}

func (w *watch) caughtUp(s client.Step) error {
	w.loading = false
	w.status("")
	if w.once {
		return errEnough
	}
	switch {
	case w.shown || s.Running:
	case s.To == thread.Cursor{}:
		w.status("nothing here yet; waiting for a run")
	default:
		w.status("waiting for a run")
	}
	return nil
}

// disconnected says that the connection is gone, once.
func (w *watch) disconnected() {
	if w.lost {
		return
	}
	w.lost = true
	if !w.ErrTerminal {
		w.aside("threadcast: " + w.gone())
		return
	}
	w.endLine(w.side)
	w.status(w.gone())
}

// gone says what is the matter while there is no connection.
func (w *watch) gone() string {
	if w.joined {
		return "the connection is lost; reconnecting"
	}
	return "the server is not ready; trying again"
}

func (w *watch) connected() {
	if w.lost && !w.ErrTerminal {
		w.aside("threadcast: connected again")
	}
	w.lost, w.joined = false, true
	w.status("")
	if w.loading {
		w.status("loading")
	}
}
