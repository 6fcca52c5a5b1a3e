package redislog

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	postsKept = 4096        // how many notices wait to be told at most
	postsOnce = 64          // how many are told in one round trip
	postWait  = time.Minute // for how long it is tried to tell one
	flushWait = time.Second // for how long the end of a log waits for what is to be told
)

// poster is what a node has to tell all nodes.
type poster struct {
	posts  chan post
	missed atomic.Bool // changes of lists were not told
}

func newPoster() poster { return poster{posts: make(chan post, postsKept)} }

// post is a notice that waits to be told.
type post struct {
	call
	lists bool            // it is a change of a list, which must not be missed without a word
	done  chan<- struct{} // closed in its turn, in place of a call; else nil
}

func (l *Log) post(p post) {
	select {
	case l.poster.posts <- p:
	default:
		l.untold(p, "too much waits to be told")
	}
}

// untold is for what is not told any more.
func (l *Log) untold(p post, why string) {
	l.opts.Logger.Warn("other nodes are not told of a change", "thread", p.args[1], "why", why)
	if p.lists {
		l.poster.missed.Store(true)
	}
}

// postAll tells what is to be told, in order, until the log is closed.
func (l *Log) postAll() {
	for {
		select {
		case <-l.stop:
			return
		case p := <-l.poster.posts:
			l.tell(l.gather(p))
			l.tellMissed()
		}
	}
}

// gather returns p with what waits behind it, as much as is told at once. One that only marks its place is the last.
func (l *Log) gather(p post) []post {
	posts := []post{p}
	for len(posts) < postsOnce && posts[len(posts)-1].done == nil {
		select {
		case next := <-l.poster.posts:
			posts = append(posts, next)
		default:
			return posts
		}
	}
	return posts
}

// tell tells all nodes. While Redis cannot be reached it tries again; after a minute nobody needs to know any more, since
// viewers ask anew when they come back, and lists begin anew.
func (l *Log) tell(posts []post) {
	if last := posts[len(posts)-1]; last.done != nil {
		defer close(last.done)
		posts = posts[:len(posts)-1]
	}
	for began := time.Now(); ; {
		var err error
		if posts, err = l.tellOnce(posts); len(posts) == 0 {
			return
		}
		if time.Since(began) > postWait || !l.pause(retryLanes) {
			for _, p := range posts {
				l.untold(p, err.Error())
			}
			return
		}
	}
}

// tellOnce is one attempt. It returns what could not be told, and why.
func (l *Log) tellOnce(posts []post) (left []post, err error) {
	if len(posts) == 0 {
		return nil, nil
	}
	calls := make([]call, len(posts))
	for i, p := range posts {
		calls[i] = p.call
	}
	replies, err := l.runAll(context.Background(), l.commands, calls)
	if err != nil {
		return posts, err
	}
	for i, r := range replies {
		if r.err != nil {
			left, err = append(left, posts[i]), r.err
		}
	}
	return left, err
}

// tellMissed tells all nodes that changes were not told, as soon as Redis can be reached.
func (l *Log) tellMissed() {
	for l.poster.missed.Swap(false) {
		if _, err := l.run(context.Background(), l.missedCall()); err == nil {
			return
		}
		l.poster.missed.Store(true)
		if !l.pause(retryLanes) {
			return
		}
	}
}

// flush waits until what is to be told has been told, if that goes fast.
func (l *Log) flush() {
	late := time.NewTimer(flushWait)
	defer late.Stop()
	done := make(chan struct{})
	select {
	case l.poster.posts <- post{done: done}:
	case <-late.C:
		return
	}
	select {
	case <-done:
	case <-late.C:
	}
}
