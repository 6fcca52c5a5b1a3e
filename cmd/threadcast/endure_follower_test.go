package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	threadclient "github.com/threadcast/threadcast/cmd/threadcast/client"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/web/webtest"
)

// patience bounds every wait for something that has to come.
const patience = 2 * time.Minute

// dial opens a socket to the node. It may be called from any goroutine.
func (n *node) dial(opts *webtest.Options) (*webtest.Client, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return webtest.Dial(ctx, n.url, opts)
}

// errNothingMore is what a follower fails with when its socket has ended, or stays silent for too long.
var errNothingMore = errors.New("nothing more comes")

// errSentAway is what a follower fails with when the server ends its membership, but not its socket.
var errSentAway = errors.New("the server ended the membership")

// follower follows one thread over sockets, one after the other. Unlike a [webtest.Viewer] it keeps none of the events, so
// that hundreds can read a long run, and it may go back to where it was before.
type follower struct {
	n      *node
	thread string
	replay string
	opts   *webtest.Options
	pos    thread.Cursor // up to which it has everything

	// take gets every batch, once it is clear that it continues what came before.
	take func(from, to thread.Cursor, b batch) error
	// caught is called for every caught_up, if it is not nil.
	caught func()
	// mayReset tells whether the log may have lost the place to which the follower returns.
	mayReset bool

	client  *webtest.Client
	channel *webtest.Channel

	joins, events, resets int
}

// join begins a membership at the follower's position, on a new socket unless it has one.
func (f *follower) join() (err error) {
	if f.client == nil {
		if f.client, err = f.n.dial(f.opts); err != nil {
			return fmt.Errorf("open a socket: %w: %w", errNothingMore, err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	payload := map[string]string{"after": f.pos.String(), "replay": f.replay}
	if f.channel, err = f.client.Join(ctx, "thread:"+f.thread, payload); err != nil {
		if webtest.Code(err) == "" {
			err = fmt.Errorf("%w: %w", errNothingMore, err)
		}
		return fmt.Errorf("join after %s: %w", f.pos, err)
	}
	f.joins++
	var reply struct{ Cursor string }
	if err := json.Unmarshal(f.channel.Joined(), &reply); err != nil || reply.Cursor != f.pos.String() {
		return fmt.Errorf("join after %s was answered %s", f.pos, f.channel.Joined())
	}
	return nil
}

// drop cuts the connection without a word.
func (f *follower) drop() {
	if f.client != nil {
		f.client.Drop()
		f.client = nil
	}
}

// leave ends the membership and keeps the socket.
func (f *follower) leave() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return f.channel.Leave(ctx)
}

// until handles what comes until done says so.
func (f *follower) until(done func() bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for !done() {
		p, err := f.channel.Next(ctx)
		if err != nil {
			return fmt.Errorf("follower of %s at %s: %w: %w", f.thread, f.pos, errNothingMore, err)
		}
		if err := f.handle(p); err != nil {
			return fmt.Errorf("follower of %s at %s: %w", f.thread, f.pos, err)
		}
	}
	return nil
}

func (f *follower) handle(p webtest.Push) error {
	step, err := threadclient.Next(f.pos, p.Event, p.Payload)
	if err != nil {
		return err
	}
	switch p.Event {
	case "ag_ui_events":
		f.events += len(step.Events)
		b := batch{RunID: string(step.RunID), From: step.From.String(), To: step.To.String(), Events: step.Events}
		if err := f.take(step.From, step.To, b); err != nil { // whether the run before was over is for take to say
			return fmt.Errorf("batch from %s to %s: %w", step.From, step.To, err)
		}
		f.pos = step.To
		return nil
	case "reset":
		if !f.mayReset || f.pos.Run == 0 || step.To != (thread.Cursor{Run: f.pos.Run}) {
			return fmt.Errorf("there came reset %s", p.Payload)
		}
		f.resets++
		f.pos = step.To
		return nil
	case "caught_up":
		if f.caught != nil {
			f.caught()
		}
		return nil
	case "status":
		return nil // it may come whenever something has changed, or may have
	case "phx_error":
		return errSentAway
	}
	return fmt.Errorf("there came %s %.200s", p.Event, p.Payload)
}
