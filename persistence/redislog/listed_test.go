package redislog_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/threadcast/threadcast/persistence/redislog"
	"github.com/threadcast/threadcast/persistence/redislog/redistest"
	"github.com/threadcast/threadcast/persistence/thread"
)

// hall is a node's board for the lists of one user, or of all. It counts what it is told.
type hall struct {
	user thread.User // of all if empty

	mu     sync.Mutex
	told   map[string]int // by thread and revision
	last   thread.Change
	missed int
}

func (h *hall) Listing(user thread.User) bool { return h.user == "" || user == h.user }

func (h *hall) Listed(c thread.Change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.told[fmt.Sprintf("%s %d", c.Thread.ID, c.Thread.Revision)]++
	h.last = c
}

func (h *hall) MissedLists() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.missed++
}

func (h *hall) count() (told, missed int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.told), h.missed
}

// revisit is a change of a thread.
func revisit(user thread.User, id thread.ID, revision uint64) thread.Change {
	return thread.Change{What: thread.Renamed, Thread: thread.Thread{ID: id, Owner: user, Revision: revision}}
}

// follow returns a node's board, once the node hears what is told of every group.
func follow(t *testing.T, log *redislog.Log, user thread.User) *hall {
	t.Helper()
	h := &hall{user: user, told: map[string]int{}}
	log.ListenLists(h)
	marker := user
	if marker == "" {
		marker = "marker"
	}
	for n := range 200 { // whatever their groups are
		id, revision := thread.ID(fmt.Sprintf("marker %d", n)), uint64(0)
		eventually(t, "the node hears of a change", func() bool {
			revision++
			log.Listed(revisit(marker, id, revision))
			late := time.Now().Add(time.Second)
			for time.Now().Before(late) {
				h.mu.Lock()
				heard := h.told[fmt.Sprintf("%s %d", id, revision)] > 0
				h.mu.Unlock()
				if heard {
					return true
				}
				pause(time.Millisecond)
			}
			return false
		})
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.told, h.missed = map[string]int{}, 0
	return h
}

// has wants the board to be told of so many changes, each once.
func (h *hall) has(t *testing.T, want int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d changes are told", want), func() bool {
		told, _ := h.count()
		return told >= want
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	for change, n := range h.told {
		if n != 1 {
			t.Errorf("%s is told %d times", change, n)
		}
	}
	if len(h.told) != want {
		t.Errorf("%d changes are told, want %d", len(h.told), want)
	}
}

func TestEveryNodeIsToldOfChangesOfLists(t *testing.T) {
	addr, prefix := sharedServer(t).Addr(), newPrefix()
	home, away := open(t, addr, prefix), open(t, addr, prefix)
	there := follow(t, away, "alice")
	here := follow(t, home, "")
	const each = 1000
	for i := range each {
		id := thread.ID(fmt.Sprintf("t%d", i%100))
		home.Listed(revisit("alice", id, uint64(2*i+1)))
		away.Listed(revisit("alice", id, uint64(2*i+2)))
		away.Listed(revisit("bob", id+"b", uint64(i)))
	}
	there.has(t, 2*each)
	here.has(t, 3*each)
	if _, missed := there.count(); missed > 0 {
		t.Errorf("%d times something was missed", missed)
	}
}

func TestAChangeIsToldAsItIs(t *testing.T) {
	addr, prefix := sharedServer(t).Addr(), newPrefix()
	home, away := open(t, addr, prefix), open(t, addr, prefix)
	there := follow(t, away, "")
	at := time.UnixMilli(1_800_000_000_123).UTC()
	for i, want := range []thread.Change{
		{What: thread.Waiting, At: at, Thread: thread.Thread{
			ID: "é {x}", Owner: "ünï", Agent: "demo", Name: `"mine"`, Title: "a\x00b\xff", LastRun: 7, Revision: 1 << 62, Queued: 3,
			Created: at, Activity: at.Add(time.Hour), Archived: at.Add(time.Minute),
			Latest: &thread.Run{Thread: "é {x}", ID: "r 7", Number: 7, Agent: "other", Accepted: at, Ended: at.Add(time.Second),
				End: thread.End{Outcome: thread.OutcomeFailed, Code: "x"}, LastSeq: 12}}},
		{What: thread.Created, At: at, Thread: thread.Thread{ID: "t", LastRun: 1, Revision: 1, Created: at, Activity: at,
			Latest: &thread.Run{Thread: "t", ID: "r", Number: 1, Accepted: at}}},
		{What: thread.Deleted, At: at, Thread: thread.Thread{ID: "t", LastRun: 1, Revision: 2, Deleted: true}},
	} {
		home.Listed(want)
		there.has(t, i+1)
		if diff := cmp.Diff(want, there.last); diff != "" {
			t.Errorf("what is told differs (-want +got):\n%s", diff)
		}
	}
}

// Whatever happens to the server, every change is told, or that some were missed.
func TestChangesOfListsOutliveTheServer(t *testing.T) {
	for _, way := range ways[:3] {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Run(t, redistest.Config{})
			home, away := open(t, server.Addr(), ""), open(t, server.Addr(), "")
			there := follow(t, away, "")
			done := make(chan struct{})
			go func() {
				defer close(done)
				for i := range 400 {
					home.Listed(revisit("u", thread.ID(fmt.Sprint("t", i)), 1))
					pause(time.Millisecond)
				}
			}()
			if err := way.do(server); err != nil {
				t.Fatal(err)
			}
			<-done
			eventually(t, "all is told, or that some of it was missed", func() bool {
				told, missed := there.count()
				return told == 400 || missed > 0
			})
			told, missed := there.count()
			t.Logf("%d of 400 changes are told; %d groups may have missed something", told, missed)
			home.Listed(revisit("u", "last", 1))
			eventually(t, "the next change is told", func() bool {
				there.mu.Lock()
				defer there.mu.Unlock()
				return there.told["last 1"] > 0
			})
		})
	}
}

// What is too much to be told is told to be missed.
func TestTooManyChangesAreToldToBeMissed(t *testing.T) {
	server := redistest.Run(t, redistest.Config{Memory: true})
	home, away := open(t, server.Addr(), ""), open(t, server.Addr(), "")
	there := follow(t, away, "")
	server.Pause()
	for i := range 6000 {
		home.Listed(revisit("u", thread.ID(fmt.Sprint("t", i)), 1))
	}
	server.Continue()
	eventually(t, "the other node is told that it missed something", func() bool {
		told, missed := there.count()
		return told >= 4096 && missed > 0
	})
}

// What waits to be told when a node ends is told before it is gone.
func TestALogThatIsClosedTellsWhatIsLeft(t *testing.T) {
	addr, prefix := sharedServer(t).Addr(), newPrefix()
	home, away := open(t, addr, prefix), open(t, addr, prefix)
	there := follow(t, away, "")
	for i := range 1000 {
		home.Listed(revisit("u", thread.ID(fmt.Sprint("t", i)), 1))
	}
	if err := home.Close(); err != nil {
		t.Fatal(err)
	}
	there.has(t, 1000)
}
