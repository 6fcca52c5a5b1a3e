package web

import (
	"crypto/rand"
	"sync"

	"github.com/threadcast/threadcast/hub"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/web/copilotkit"
	"github.com/threadcast/threadcast/web/wire"
)

// topicMetadata is what the topic begins with on which CopilotKit's clients hear of a user's threads. Behind it comes the code
// that a list came with: any will do, since the ticket says of which user the threads are.
const topicMetadata = "user_meta:"

// metadata is a membership in the topic of a user's threads in CopilotKit's form.
type metadata struct {
	follower
	code string
}

func newMetadata(ch *channel, code string) *metadata {
	m := &metadata{follower: follower{channel: ch, user: ch.ss.caller.User}, code: code}
	m.write = m.push
	return m
}

// join begins the subscription and answers.
func (m *metadata) join(f wire.Frame) {
	if err := m.subscribe(); err != nil {
		m.drop(f, err)
		return
	}
	m.ss.srv.following.enter(m.ss.caller, m.code) // first: who has the answer may ask for a list
	if !m.send(newFrames().reply(f, "ok", []byte("{}"))) {
		m.ss.srv.following.leave(m.ss.caller, m.code)
		m.sub.Close()
		return
	}
	m.ss.busy.Go(func() {
		defer m.ss.srv.following.leave(m.ss.caller, m.code)
		m.pump()
	})
}

// handle refuses: there is nothing to be asked for.
func (m *metadata) handle(f wire.Frame) { m.ss.refuse(f, errUnknownEvent) }

// push writes a batch. Changes that come late are left out, since these clients take the last one for how things are, and
// so is what they do not show.
// Where changes are missing, the latest threads are told as they are.
func (m *metadata) push(f *frames, b hub.ListBatch) error {
	if b.Reset {
		ctx, cancel := look(m.ctx)
		defer cancel()
		page := thread.Page{Owner: m.user, Archived: true, Limit: normalThreads}
		latest, _, err := m.ss.srv.Directory.Threads(ctx, page)
		if err != nil {
			return err
		}
		for _, t := range latest {
			f.push(m.channel, copilotkit.PushMetadata, copilotkit.Metadata(thread.Change{Thread: t, At: t.Activity}))
		}
	}
	for _, c := range b.Changes {
		if c.Late || c.What == thread.Enqueued {
			continue
		}
		meta := c.Form(copilotkit.PushMetadata, func() []byte { return copilotkit.Metadata(c.Change) })
		f.push(m.channel, copilotkit.PushMetadata, meta)
		run := c.Form(copilotkit.PushRunActivity, func() []byte { return copilotkit.RunActivity(c.Change) })
		if run != nil {
			f.push(m.channel, copilotkit.PushRunActivity, run)
		}
	}
	return nil
}

// followedLists are the topics of lists that CopilotKit's clients follow here, by who follows them.
type followedLists struct {
	mu sync.Mutex
	of map[caller]*followed
}

type followed struct {
	code    string // of the latest member
	members int
}

// code returns the code of the topic that the caller follows, or a new one if there is none.
func (l *followedLists) code(who caller) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.of[who]; f != nil {
		return f.code
	}
	return rand.Text()
}

func (l *followedLists) enter(who caller, code string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.of[who]
	if f == nil {
		f = &followed{}
		if l.of == nil {
			l.of = make(map[caller]*followed)
		}
		l.of[who] = f
	}
	f.code = code
	f.members++
}

// leave counts a member out. One with the code that lists come with makes that a new one: its client may have given up, and
// follows again only with another than it had.
func (l *followedLists) leave(who caller, code string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.of[who]; f != nil {
		if f.code == code {
			f.code = rand.Text()
		}
		if f.members--; f.members == 0 {
			delete(l.of, who)
		}
	}
}
