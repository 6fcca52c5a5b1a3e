package terminal

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/threadcast/threadcast/cmd/threadcast/client"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/web/wire"
)

// Question is what [Ask] asks.
type Question struct {
	Text   string
	Thread string // a new one if it is empty
	Agent  string // the one that the thread had last, or the default one, if it is empty
	OnBusy string // what to do if another run is active; to refuse if it is empty
	// Answers are what the thread waits for, one for each question in their order: yes, no, or a value.
	Answers []string
	// StopOnInterrupt stops the run when ctx ends. Otherwise it goes on without anybody who waits for it.
	StopOnInterrupt bool
	// Insist is closed when not even the stop is to be waited for.
	Insist <-chan struct{}
	// Flags are those that the commands need which are proposed.
	Flags string
}

// asking is a question, and the runs that come of it.
type asking struct {
	*watch
	c     Config
	q     Question
	talk  conversation
	run   string // whose answer is shown
	place int    // in the queue; 0 if it does not wait there
	began bool   // an event of the run has come
	end   fields // the event that ended it
	typed <-chan string
	gone  chan struct{} // closed when nobody waits for what is typed

	over <-chan error // of the follower
	stop func()
}

// Ask starts a run and shows what comes of it, until it ends. What the run asks is asked in turn, if there is somebody to
// answer. When ctx ends the run goes on, unless it is to be stopped. For the errors see [ExitCode].
func Ask(ctx context.Context, c Config, q Question) error {
	if q.Thread == "" {
		q.Thread = "ask-" + strings.ToLower(rand.Text()[:12])
	}
	f := &follower{nodes: c.nodes(), thread: q.Thread, raw: true}
	defer f.nodes.Close()
	a := &asking{watch: newWatch(c, f, newScreen(c.Output, true)), c: c, q: q, gone: make(chan struct{}), stop: func() {}}
	defer close(a.gone)
	a.view.solo, a.loading = true, false
	if a.lines != nil {
		a.In = nil // who reads JSON answers with a command
	}
	err := a.all(ctx)
	a.stop()
	a.status("")
	a.endLine(a.out)
	a.endLine(a.side)
	err = a.leave(ctx, err)
	if flushed := a.flush(); err == nil {
		err = flushed
	}
	return c.explain(err)
}

// all is the question, the answer, and what follows from it.
func (a *asking) all(ctx context.Context) error {
	a.status("connecting to " + line(a.c.Server))
	err := a.flush()
	if err != nil {
		return err
	}
	if a.talk, err = loadConversation(ctx, a.follower.nodes, a.q.Thread); err != nil {
		return err
	}
	resume, err := a.firstAnswers(ctx)
	if err != nil {
		return err
	}
	if a.q.Text != "" {
		a.talk.say(a.q.Text)
	}
	if err := a.request(ctx, resume); err != nil {
		return err
	}
	for {
		if err := a.watchRun(ctx); err != nil {
			return err
		}
		if a.end.object("outcome").text("type") != "interrupt" {
			return a.outcome()
		}
		if err := a.answer(ctx); err != nil {
			return err
		}
	}
}

// answer asks what the run asks, and starts the run that brings the answer.
func (a *asking) answer(ctx context.Context) error {
	a.talk.pending = nil
	for _, raw := range a.end.object("outcome").list("interrupts") {
		a.talk.pending = append(a.talk.pending, fieldsOf(raw))
	}
	resume, err := a.prompt(ctx)
	switch {
	case errors.Is(err, errElsewhere):
		return nil
	case err != nil:
		return err
	}
	if a.talk, err = loadConversation(ctx, a.follower.nodes, a.q.Thread); err != nil {
		return err
	}
	return a.request(ctx, resume)
}

// outcome is the error of a run that has ended.
func (a *asking) outcome() (err error) {
	o := a.end.object("outcome")
	switch {
	case a.end.text("type") == "RUN_ERROR", o.text("type") == "cancelled":
		err = ErrRun
	case len(o.list("pendingToolCallIds")) > 0:
		err = ErrWaiting
	default:
		return nil
	}
	if a.lines == nil {
		err = said{err} // the view has shown it
	}
	return err
}

// request asks for a run, which may mean to ask more than once: the run has its id from here. Somebody else may have answered
// before; then that run is the one to be shown.
func (a *asking) request(ctx context.Context, resume []resumeEntry) error {
	a.run, a.began, a.end = "run-"+strings.ToLower(rand.Text()[:16]), false, nil
	var reply struct {
		RunID  string `json:"runId"`
		Cursor string `json:"cursor"`
		Queued int    `json:"queued"`
	}
	ask := client.Request{
		Method: http.MethodPost, Path: client.ThreadPath(a.q.Thread) + "/runs",
		Body: a.talk.request(a.run, a.q, resume),
	}
	err := a.follower.nodes.Call(ctx, ask, &reply)
	var refused *client.Refusal
	switch {
	case errors.As(err, &refused) && refused.Code == "already_answered" && refused.RunID != "" && a.over != nil:
		a.adopt(refused.RunID)
		return nil
	case err != nil:
		return err
	}
	a.place = reply.Queued
	if a.over == nil {
		if a.follower.pos, err = thread.ParseCursor(reply.Cursor); err != nil {
			return fmt.Errorf("read the answer: %w", err)
		}
		a.over, a.stop = a.start(ctx)
		a.accepted(reply.Cursor)
	}
	return nil
}

// accepted says which thread it is.
func (a *asking) accepted(cursor string) {
	if a.lines != nil {
		a.lines.line(member{"threadId", quoted(a.q.Thread)}, member{"runId", quoted(a.run)}, member{"cursor", quoted(cursor)})
		return
	}
	a.aside(a.paint(dim, pad("thread", labelled)+line(a.q.Thread)))
}

// watchRun shows the run until it ends.
func (a *asking) watchRun(ctx context.Context) error {
	for a.end == nil {
		if !a.began {
			a.status(a.waitingFor())
		}
		if err := a.flush(); err != nil {
			return err
		}
		select {
		case err := <-a.over:
			return err
		case f := <-a.follower.facts:
			if err := a.take(ctx, f); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *asking) waitingFor() string {
	switch {
	case a.lost:
		return a.watch.gone()
	case a.place > 0:
		return fmt.Sprintf("waiting for its turn: number %d in the queue of the thread", a.place)
	}
	return "waiting for the agent"
}

// take shows a fact, if it is about the run.
func (a *asking) take(ctx context.Context, f fact) error {
	mine := string(f.step.RunID) == a.run
	switch f.event {
	case wire.EventJoin, wire.EventStatus:
		if f.event == wire.EventJoin {
			a.connected()
		}
		return a.turn(ctx, f.status)
	case wire.EventEvents:
		if !mine && a.began {
			return a.look(ctx) // it has ended without our knowing
		}
		if mine {
			a.began, a.place = true, 0
			a.batch(f.step)
			if ended(f.step) {
				a.end = fieldsOf(f.step.Events[len(f.step.Events)-1])
			}
		}
		return nil
	case wire.EventReset:
		if mine || f.step.RunID == "" {
			a.reset(f.step)
		}
		return nil
	case wire.EventCaughtUp:
		if !a.began && a.place == 0 {
			return a.look(ctx)
		}
		return nil
	}
	return a.watch.take(f)
}

// turn keeps the run's place in the queue.
func (a *asking) turn(ctx context.Context, s threadStatus) error {
	waited := a.place > 0
	a.place = 0
	for i, q := range s.Queue {
		if q.RunID == a.run {
			a.place = i + 1
		}
	}
	if waited && a.place == 0 && !a.began && s.RunID != a.run {
		return a.look(ctx)
	}
	return nil
}

// look finds out if the run has gone: somebody took it out of the queue, or replaced it. Of neither there are any events.
func (a *asking) look(ctx context.Context) error {
	var run struct {
		Discarded bool `json:"discarded"`
	}
	path := client.ThreadPath(a.q.Thread) + "/runs/" + url.PathEscape(a.run)
	err := a.follower.nodes.Call(ctx, client.Request{Method: http.MethodGet, Path: path}, &run)
	var refused *client.Refusal
	switch {
	case errors.As(err, &refused) && refused.Status == http.StatusNotFound:
		return failure{"the run was taken back before it began", ErrRun}
	case run.Discarded:
		return failure{"the run was replaced by another one", ErrRun}
	}
	return nil // whatever else it is, its events will come
}
