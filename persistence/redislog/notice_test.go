package redislog_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/redislog"
	"github.com/threadcast/threadcast/persistence/redislog/redistest"
	"github.com/threadcast/threadcast/persistence/thread"
)

// wall keeps what a node's board is told.
type wall chan string

func (w wall) Changed(id thread.ID) { w <- "changed " + string(id) }

func (w wall) Missed(id thread.ID) { w <- "missed " + string(id) }

func (w wall) Discarded(id thread.ID, run thread.Run) {
	w <- fmt.Sprintf("discarded %s: %s %s", id, run.ID, run.Cursor())
}

func (w wall) expect(t *testing.T, want ...string) {
	t.Helper()
	for _, line := range want {
		select {
		case got := <-w:
			if got != line {
				t.Errorf("the board is told %q, not %q", got, line)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("the board is not told %q", line)
		}
	}
}

// listen returns a node's board, once the node hears what is told of these threads.
func listen(t *testing.T, name thread.RunID, log *redislog.Log, ids ...thread.ID) wall {
	t.Helper()
	w := make(wall, 1024)
	log.Listen(w)
	for _, id := range ids {
		view(t, log, id)
		for n, heard := uint64(1), false; !heard; n++ {
			marker := thread.Run{Number: n, ID: name, LastSeq: n}
			log.Discarded(id, marker)
			heard = w.hears(fmt.Sprintf("discarded %s: %s %s", id, name, marker.Cursor()))
		}
	}
	return w
}

// hears passes over what comes until it is this, and tells whether it comes.
func (w wall) hears(want string) bool {
	late := time.After(2 * time.Second)
	for {
		select {
		case got := <-w:
			if got == want {
				return true
			}
		case <-late:
			return false // the node was not reading yet
		}
	}
}

// What one node tells, every node is told that watches the thread, in order; the one that tells it, too.
func TestEveryNodeIsTold(t *testing.T) {
	addr, prefix := sharedServer(t).Addr(), newPrefix()
	home, away := open(t, addr, prefix), open(t, addr, prefix)
	here, there := listen(t, "home", home, "é {x}", "t"), listen(t, "away", away, "t")
	home.Discarded("t", thread.Run{ID: "both listen"})
	if !here.hears("discarded t: both listen 0-0") || !there.hears("discarded t: both listen 0-0") {
		t.Fatal("a node hears nothing")
	}
	home.Changed("nobody watches this")
	home.Changed("t")
	home.Discarded("t", thread.Run{Number: 7, ID: "r 7", LastSeq: 12})
	want := []string{"changed t", "discarded t: r 7 7-12"}
	there.expect(t, want...)
	here.expect(t, want...)
	away.Changed("t")
	there.expect(t, "changed t")
	here.expect(t, "changed t")
	home.Changed("é {x}")
	here.expect(t, "changed é {x}")
	if len(there) > 0 {
		t.Errorf("a node is told %q of what nobody there watches", <-there)
	}
}

// Who may have missed what was told is told that something changed.
func TestWhatMayHaveBeenMissedIsTold(t *testing.T) {
	server := redistest.Run(t, redistest.Config{Memory: true})
	home, away := open(t, server.Addr(), ""), open(t, server.Addr(), "")
	there := listen(t, "away", away, "t")
	home.Changed("t")
	there.expect(t, "changed t")
	if err := server.FlushAll(); err != nil {
		t.Fatal(err)
	}
	there.expect(t, "missed t")
	var _ redislog.Board = there
}
