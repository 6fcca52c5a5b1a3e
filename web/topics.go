package web

import (
	"strings"

	"github.com/threadcast/threadcast/persistence/thread"
)

// memberOf returns what a membership does, by its topic and the socket it is on; nil if there is no such topic.
func (ss *session) memberOf(ch *channel) member {
	if ss.pass != nil {
		return ss.pass.memberOf(ch)
	}
	if id, ok := strings.CutPrefix(ch.topic, "thread:"); ok {
		return &viewer{channel: ch, id: thread.ID(id)}
	}
	return nil
}

// pass is what let a socket of CopilotKit in.
type pass struct {
	grant
}

// memberOf returns what a membership does on a socket that was let in with a ticket: it allows one topic.
func (p *pass) memberOf(ch *channel) member {
	return nil
}

func (p *pass) arrived(uint64) {}
