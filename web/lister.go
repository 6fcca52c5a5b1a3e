package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/threadcast/threadcast/hub"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/web/wire"
)

// topicUser is the topic of the caller's threads.
const topicUser = "user"

// follower moves the changes of a user's threads from the hub to the socket.
type follower struct {
	*channel
	user thread.User
	sub  *hub.ListSubscription
	// write adds what a batch is on the socket.
	write func(*frames, hub.ListBatch) error
}

// subscribe begins the subscription, which pump or the caller closes.
func (l *follower) subscribe() (err error) {
	l.sub, err = l.ss.srv.Hub.SubscribeList(l.user)
	return err
}

// pump writes what changes until the membership or the socket ends.
func (l *follower) pump() {
	defer l.cancel()
	defer l.sub.Close()
	for {
		b, err := l.sub.Next(l.ctx)
		f := newFrames()
		if err == nil {
			err = l.write(f, b)
		}
		if err != nil {
			f.release()
			l.end(err)
			return
		}
		if !l.send(f) {
			return
		}
	}
}

// end makes the client join again, unless it has left.
func (l *follower) end(err error) {
	if l.ctx.Err() != nil {
		return
	}
	l.ss.forget(l.channel)
	if !errors.Is(err, thread.ErrDraining) {
		l.ss.srv.report(problem(err), "list", fmt.Errorf("threads of %q: %w", l.user, err))
	}
	l.send(newFrames().push(l.channel, wire.EventError, []byte("{}")))
}

// lister is a membership in the topic of the caller's threads.
type lister struct {
	follower
	joined bool
}

func newLister(ch *channel) *lister {
	return &lister{follower: follower{channel: ch, user: ch.ss.caller.User, write: func(f *frames, b hub.ListBatch) error {
		pushList(ch, f, b)
		return nil
	}}}
}

// pushList writes a batch in the form of the topic.
func pushList(ch *channel, f *frames, b hub.ListBatch) {
	if b.Reset {
		f.push(ch, wire.EventListReset, []byte("{}"))
	}
	for _, c := range b.Changes {
		f.push(ch, wire.EventListChange, c.Form(topicUser, func() []byte { return changeView(c.Change) }))
	}
}

// join subscribes, reads the list, answers with it, and starts the pump.
func (l *lister) join(f wire.Frame) {
	text, err := l.list(f)
	switch {
	case err == nil && l.send(newFrames().reply(f, "ok", text)):
		l.joined = true
		l.ss.busy.Go(l.pump)
		return
	case err != nil:
		l.drop(f, err)
	}
	if l.sub != nil {
		l.sub.Close()
	}
}

// list begins the subscription and returns the list after which it goes on.
func (l *lister) list(f wire.Frame) ([]byte, error) {
	asked, err := parseFields(f.Payload)
	if err != nil {
		return nil, err
	}
	page, err := asked.page()
	if err != nil {
		return nil, err
	}
	page.Before = ""
	if err := l.subscribe(); err != nil {
		return nil, err
	}
	ctx, cancel := look(l.ctx)
	defer cancel()
	p, err := l.ss.srv.threads(ctx, l.ss.caller, page)
	if err != nil {
		return nil, err
	}
	l.sub.Seen(p.rows)
	return json.Marshal(p)
}

// handle answers a push of a joined client.
func (l *lister) handle(f wire.Frame) {
	if !l.joined {
		l.ss.refuse(f, errUnmatched)
		return
	}
	response, err := l.answer(f)
	var text []byte
	if err == nil {
		text, err = json.Marshal(response)
	}
	if err != nil {
		l.ss.refuse(f, err)
		return
	}
	l.ss.reply(f, "ok", text)
}

func (l *lister) answer(f wire.Frame) (any, error) {
	asked, err := parseFields(f.Payload)
	if err != nil {
		return nil, err
	}
	// What changes something is carried out even if its socket is gone by now.
	ctx, cancel := look(context.WithoutCancel(l.ss.ctx))
	defer cancel()
	switch f.Event {
	case "list":
		page, err := asked.page()
		if err != nil {
			return nil, err
		}
		return l.ss.srv.threads(ctx, l.ss.caller, page)
	case "rename", "archive":
		return l.edit(ctx, f.Event, asked)
	case "delete":
		id, err := asked.threadOf()
		if err != nil {
			return nil, err
		}
		return struct{}{}, l.ss.srv.erase(ctx, l.ss.caller, id)
	}
	return nil, fmt.Errorf("%w: %q; %s takes list, rename, archive and delete", errUnknownEvent, f.Event, topicUser)
}

// edit names a thread, or archives it, or takes that back.
func (l *lister) edit(ctx context.Context, event string, asked fields) (any, error) {
	id, err := asked.threadOf()
	if err != nil {
		return nil, err
	}
	edit, err := asked.edit()
	switch {
	case err != nil:
		return nil, err
	case event == "rename" && edit.Name == nil:
		return nil, badInput("name is missing")
	case event == "rename":
		edit.Archived = nil
	default:
		edit.Name = nil
		if edit.Archived == nil {
			edit.Archived = new(true)
		}
	}
	t, err := l.ss.srv.edit(ctx, l.ss.caller, id, edit)
	if err != nil {
		return nil, err
	}
	return map[string]threadView{"thread": viewOf(t)}, nil
}
