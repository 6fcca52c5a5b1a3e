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
	if ch.topic == topicUser {
		return newLister(ch)
	}
	if id, ok := strings.CutPrefix(ch.topic, "thread:"); ok {
		return &viewer{channel: ch, id: thread.ID(id)}
	}
	return nil
}
