package hub_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/threadcast/threadcast/hub"
	"github.com/threadcast/threadcast/persistence/memlog"
	"github.com/threadcast/threadcast/persistence/thread"
)

// listHub is a hub whose lists are told of changes by hand.
type listHub struct {
	*testing.T
	*hub.Hub
}

func newListHub(t *testing.T) listHub {
	log := memlog.New()
	h := hub.New(log, &shelf{}, hub.Config{})
	t.Cleanup(func() {
		h.Close()
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	return listHub{t, h}
}

func (h listHub) follow(user thread.User) *hub.ListSubscription {
	h.Helper()
	s, err := h.SubscribeList(user)
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(s.Close)
	return s
}

// change is one of a user's thread.
func change(user thread.User, id thread.ID, revision uint64) thread.Change {
	return thread.Change{What: thread.Renamed, Thread: thread.Thread{ID: id, Owner: user, Revision: revision}}
}

// got are the changes that a subscription has at this moment, as "<thread> <revision>"; "anew" stands for a reset.
func (h listHub) got(s *hub.ListSubscription) []string {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.Context(), 10*time.Second)
	defer cancel()
	b, err := s.Next(ctx)
	if err != nil {
		h.Fatal(err)
	}
	var all []string
	if b.Reset {
		all = append(all, "anew")
	}
	for _, c := range b.Changes {
		text := fmt.Sprintf("%s %d", c.Thread.ID, c.Thread.Revision)
		if c.Late {
			text += " late"
		}
		all = append(all, text)
	}
	return all
}

func (h listHub) expect(s *hub.ListSubscription, want ...string) {
	h.Helper()
	if got := h.got(s); fmt.Sprint(got) != fmt.Sprint(want) {
		h.Errorf("got %v, want %v", got, want)
	}
}

// nothing wants no change to be there.
func (h listHub) nothing(s *hub.ListSubscription) {
	h.Helper()
	ctx, cancel := context.WithCancel(h.Context())
	cancel()
	if b, err := s.Next(ctx); err == nil {
		h.Errorf("got %+v, want nothing", b)
	}
}

func TestAListGetsTheChangesOfItsUserEachOnce(t *testing.T) {
	h := newListHub(t)
	alice, again, bob := h.follow("alice"), h.follow("alice"), h.follow("bob")
	if !h.Listing("alice") || !h.Listing("bob") || h.Listing("") {
		t.Error("it is not known whose lists are looked at")
	}
	h.Listed(change("alice", "a", 1))
	h.Listed(change("carol", "c", 1))
	h.Listed(change("alice", "a", 2))
	h.Listed(change("alice", "a", 1))
	h.Listed(change("bob", "b", 7))
	h.Listed(change("alice", "a", 2))
	h.Listed(change("alice", "x", 5))
	for _, s := range []*hub.ListSubscription{alice, again} {
		h.expect(s, "a 1", "a 2", "x 5")
		h.nothing(s)
	}
	h.expect(bob, "b 7")
	h.nothing(bob)
	again.Close()
	alice.Close()
	if h.Listing("alice") {
		t.Error("a list that nobody looks at any more is kept")
	}
}

func TestChangesThatComeInAnotherOrderAreToldOnce(t *testing.T) {
	h := newListHub(t)
	s := h.follow("u")
	for _, revision := range []uint64{5, 3, 8, 3, 5, 4, 8, 6, 7, 7, 200, 136, 135, 199, 199, 8} {
		h.Listed(change("u", "t", revision))
	}
	h.expect(s, "t 5", "t 3 late", "t 8", "t 4 late", "t 6 late", "t 7 late", "t 200", "t 136 late", "t 199 late")
}

func TestWhatTheListHadIsNotToldAgain(t *testing.T) {
	h := newListHub(t)
	s := h.follow("u")
	h.Listed(change("u", "a", 3))
	h.Listed(change("u", "b", 3))
	s.Seen([]thread.Thread{{ID: "a", Revision: 4}, {ID: "b", Revision: 2}})
	h.Listed(change("u", "a", 4))
	h.expect(s, "b 3")
	h.Listed(change("u", "a", 5))
	h.expect(s, "a 5")
	h.Listed(change("u", "a", 2))
	h.nothing(s)
}

func TestABurstReachesAReaderThatDoesNotLookOnceEach(t *testing.T) {
	h := newListHub(t)
	s := h.follow("u")
	for i := range 2000 {
		h.Listed(change("u", thread.ID(fmt.Sprint(i%500)), uint64(i/500+1)))
	}
	if got := h.got(s); len(got) != 2000 {
		t.Errorf("%d of 2,000 changes came", len(got))
	}
}

func TestWhatWaitsForASlowReaderIsBounded(t *testing.T) {
	for _, tt := range []struct {
		name    string
		threads int
		most    int
		want    string
	}{
		{"of a few threads the latest", 100, 2048, "0 1000"},
		{"of too many threads nothing", 5000, 2049, "anew"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newListHub(t)
			s := h.follow("u")
			for revision := range 1000 {
				for id := range tt.threads {
					if revision*tt.threads > 300_000 {
						break // that is enough
					}
					h.Listed(change("u", thread.ID(fmt.Sprint(id)), uint64(revision+1)))
				}
			}
			got := h.got(s)
			if len(got) > tt.most {
				t.Fatalf("%d changes wait", len(got))
			}
			found := false
			for _, line := range got {
				found = found || line == tt.want
			}
			if !found {
				t.Errorf("%q is not among the %d that wait", tt.want, len(got))
			}
			h.Listed(change("u", "next", 1))
			h.expect(s, "next 1")
		})
	}
}

func TestWhoMayHaveMissedChangesBeginsAnewOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newListHub(t)
		alice, bob := h.follow("alice"), h.follow("bob")
		h.Listed(change("alice", "a", 1))
		for range 16 {
			h.MissedLists()
		}
		h.expect(alice, "a 1")
		synctest.Wait()
		h.nothing(alice)
		h.expect(alice, "anew")
		h.Listed(change("bob", "b", 2))
		h.expect(bob, "anew", "b 2")
		<-time.After(time.Hour)
		h.nothing(alice)
		h.MissedLists()
		h.expect(alice, "anew")
	})
}

func TestAClosedHubEndsItsLists(t *testing.T) {
	h := newListHub(t)
	s := h.follow("u")
	ended := make(chan error, 1)
	go func() {
		_, err := s.Next(context.Background())
		ended <- err
	}()
	h.MissedLists()
	h.Close()
	if err := <-ended; !errors.Is(err, thread.ErrDraining) {
		t.Errorf("got %v", err)
	}
	if _, err := h.SubscribeList("u"); !errors.Is(err, thread.ErrDraining) {
		t.Errorf("got %v", err)
	}
	h.Listed(change("u", "a", 1))
	h.MissedLists()
}

func TestAFormOfAChangeIsBuiltOnce(t *testing.T) {
	h := newListHub(t)
	one, two := h.follow("u"), h.follow("u")
	h.Listed(change("u", "a", 1))
	built := 0
	for _, s := range []*hub.ListSubscription{one, two} {
		b, err := s.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range []string{"x", "y"} {
			text := b.Changes[0].Form(form, func() []byte { built++; return []byte(form) })
			if string(text) != form {
				t.Errorf("got %s", text)
			}
		}
	}
	if built != 2 {
		t.Errorf("two forms were built %d times", built)
	}
}

// Lists are told, read, begun and ended at once: for the race detector.
func TestListsAreSafeForConcurrentUse(t *testing.T) {
	h := newListHub(t)
	stay := h.follow("u")
	var all sync.WaitGroup
	for n := range 4 {
		all.Go(func() {
			for i := range 250 {
				h.Listed(change("u", thread.ID(fmt.Sprint(n)), uint64(i+1)))
			}
		})
		all.Go(func() {
			for range 50 {
				s, err := h.SubscribeList("u")
				if err != nil {
					t.Error(err)
					return
				}
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				_, _ = s.Next(ctx)
				s.Close()
			}
		})
	}
	all.Wait()
	if got := h.got(stay); len(got) != 1000 {
		t.Errorf("%d of 1,000 changes came", len(got))
	}
}
