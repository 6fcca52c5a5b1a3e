package hub_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/threadcast/threadcast/hub"
	"github.com/threadcast/threadcast/persistence/logtest"
	"github.com/threadcast/threadcast/persistence/thread"
)

func TestReplayThenLive(t *testing.T) {
	t.Run("UnknownThreadIsEmptyAndFollowed", func(t *testing.T) {
		b := setup(t, hub.Config{})
		s := b.subscribe(hub.Options{})
		b.expect(s, "caught up 0-0")
		b.quiet(s)
		b.begin()
		b.emit(2)
		b.follow(s, cursor(1, 2), "1.1 1.2")
		b.end()
		b.expect(s, "r1 1-2>1-3:")
	})
	t.Run("FinishedRunsComeCompacted", func(t *testing.T) {
		b := setup(t, hub.Config{Compact: pairs})
		b.whole(3)
		b.whole(2)
		s := b.subscribe(hub.Options{})
		b.expect(s, "r1 1-0>1-4: 1.1+1.2 1.3", "r2 2-0>2-3: 2.1+2.2", "caught up 2-3")
		b.whole(1)
		b.follow(s, cursor(3, 2), "3.1")
	})
	t.Run("FinishedRunsComeRawWhileRetained", func(t *testing.T) {
		b := setup(t, hub.Config{Compact: pairs})
		b.whole(2)
		b.whole(2)
		b.drop(1)
		s := b.subscribe(hub.Options{Replay: hub.Raw})
		b.expect(s, "r1 1-0>1-3: 1.1+1.2", "r2 2-0>2-3: 2.1 2.2", "caught up 2-3")
	})
	t.Run("LiveRunComesCompactedUpToNow", func(t *testing.T) {
		b := setup(t, hub.Config{Compact: pairs})
		b.begin()
		b.emit(5)
		s := b.subscribe(hub.Options{})
		b.expect(s, "r1 1-0>1-5: 1.1+1.2 1.3+1.4 1.5", "caught up 1-5")
		b.emit(2)
		b.expect(s, "r1 1-5>1-7: 1.6 1.7")
		b.end()
		b.expect(s, "r1 1-7>1-8:")
		b.save()
		b.drop(1)
		b.quiet(s)
	})
	t.Run("IdleThreadWithEmptyLogIsReadFromHistory", func(t *testing.T) {
		b := setup(t, hub.Config{Compact: pairs})
		b.whole(2)
		b.drop(1)
		s := b.subscribe(hub.Options{})
		b.expect(s, "r1 1-0>1-3: 1.1+1.2", "caught up 1-3")
		b.quiet(s)
		b.begin()
		b.emit(1)
		b.expect(s, "r2 2-0>2-1: 2.1")
	})
	t.Run("FromNow", func(t *testing.T) {
		b := setup(t, hub.Config{Compact: pairs})
		b.whole(2)
		b.begin()
		b.emit(3)
		s := b.subscribe(hub.Options{Now: true})
		if s.Start() != cursor(2, 3) {
			t.Errorf("start is %s", s.Start())
		}
		b.expect(s, "caught up 2-3")
		b.emit(1)
		b.expect(s, "r2 2-3>2-4: 2.4")
	})
	t.Run("FromNowAfterAnEnd", func(t *testing.T) {
		b := setup(t, hub.Config{})
		b.whole(1)
		b.drop(1)
		s := b.subscribe(hub.Options{Now: true})
		b.expect(s, "caught up 1-2")
		b.whole(1)
		b.follow(s, cursor(2, 2), "2.1")
	})
}

func TestResume(t *testing.T) {
	for name, tt := range map[string]struct {
		write func(*bench)
		after thread.Cursor
		want  []string
	}{
		"InALiveRun": {
			func(b *bench) { b.begin(); b.emit(4) }, cursor(1, 2),
			[]string{"r1 1-2>1-4: 1.3 1.4", "caught up 1-4"},
		},
		"AtTheHeadOfALiveRun": {
			func(b *bench) { b.begin(); b.emit(4) }, cursor(1, 4), []string{"caught up 1-4"},
		},
		"BeforeTheFirstEvent": {
			func(b *bench) { b.begin(); b.emit(1) }, cursor(1, 0),
			[]string{"r1 1-0>1-1: 1.1", "caught up 1-1"},
		},
		"InARetainedRun": {
			func(b *bench) { b.whole(4) }, cursor(1, 1), []string{"r1 1-1>1-5: 1.2 1.3 1.4", "caught up 1-5"},
		},
		"AtTheTerminalOfARetainedRun": {
			func(b *bench) { b.whole(4); b.whole(1) }, cursor(1, 4),
			[]string{"r1 1-4>1-5:", "r2 2-0>2-2: 2.1", "caught up 2-2"},
		},
		"AtTheEndOfADroppedRun": {
			func(b *bench) { b.whole(4); b.drop(1); b.whole(1) }, cursor(1, 5),
			[]string{"r2 2-0>2-2: 2.1", "caught up 2-2"},
		},
		"AtACutOfADroppedRun": {
			func(b *bench) { b.whole(4); b.drop(1) }, cursor(1, 2), []string{"r1 1-2>1-5: 1.3+1.4", "caught up 1-5"},
		},
		"InsideACompactedEventOfADroppedRun": {
			func(b *bench) { b.whole(4); b.drop(1); b.whole(1) }, cursor(1, 3),
			[]string{"reset r1 1-0", "r1 1-0>1-5: 1.1+1.2 1.3+1.4", "r2 2-0>2-2: 2.1", "caught up 2-2"},
		},
		"LaterRunsComeCompacted": {
			func(b *bench) { b.whole(2); b.whole(2); b.begin(); b.emit(3) }, cursor(1, 1),
			[]string{
				"r1 1-1>1-3: 1.2", "r2 2-0>2-3: 2.1+2.2", "r3 3-0>3-3: 3.1+3.2 3.3", "caught up 3-3",
			},
		},
		"RunAcceptedButSilent": {
			func(b *bench) { b.whole(1); b.shelf.last = 2 }, cursor(2, 0), []string{"caught up 2-0"},
		},
		"FinishedRunIsDroppedAndTheNextIsSilent": {
			func(b *bench) { b.whole(2); b.drop(1); b.shelf.last = 2 }, cursor(0, 0),
			[]string{"r1 1-0>1-3: 1.1+1.2", "caught up 1-3"},
		},
		"BeforeARunOfADeletedThread": {
			func(b *bench) { b.shelf.last, b.shelf.gone = 3, true }, cursor(2, 0), []string{"reset  0-0", "caught up 0-0"},
		},
		"ThreadWasDeleted": {
			func(b *bench) { b.shelf.last, b.shelf.gone = 3, true }, cursor(2, 7), []string{"reset  0-0", "caught up 0-0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t, hub.Config{Compact: pairs})
			tt.write(b)
			s := b.subscribe(hub.Options{After: tt.after})
			b.expect(s, tt.want...)
			b.quiet(s)
			resumed := !strings.Contains(tt.want[0], "reset  ") && tt.after != cursor(0, 0)
			if s.Resumed() != resumed {
				t.Errorf("resumed is %t", s.Resumed())
			}
		})
	}
}

func TestBadCursor(t *testing.T) {
	for name, tt := range map[string]struct {
		write func(*bench)
		after thread.Cursor
	}{
		"UnknownThread": {func(*bench) {}, cursor(1, 0)},
		"RunAhead":      {func(b *bench) { b.whole(2) }, cursor(2, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t, hub.Config{})
			tt.write(b)
			_, err := b.hub.Subscribe(t.Context(), b.id, hub.Options{After: tt.after})
			if !errors.Is(err, thread.ErrBadCursor) {
				t.Fatalf("got %v", err)
			}
			if n := b.hub.Watched(); n != 0 {
				t.Errorf("%d threads are still watched", n)
			}
		})
	}
}

// Where the log has lost some of what a viewer saw of a run, and so has the record of it, the viewer takes the run again.
func TestCursorAheadOfItsRun(t *testing.T) {
	for name, tt := range map[string]struct {
		write func(*bench)
		after thread.Cursor
		want  []string
	}{
		"that goes on":     {func(b *bench) { b.begin(); b.emit(2) }, cursor(1, 3), []string{"r1 1-0>1-2: 1.1 1.2", "caught up 1-2"}},
		"that has ended":   {func(b *bench) { b.whole(2) }, cursor(1, 4), []string{"r1 1-0>1-3: 1.1+1.2", "caught up 1-3"}},
		"that was dropped": {func(b *bench) { b.whole(2); b.drop(1) }, cursor(1, 4), []string{"r1 1-0>1-3: 1.1+1.2", "caught up 1-3"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t, hub.Config{})
			tt.write(b)
			s := b.subscribe(hub.Options{After: tt.after})
			b.expect(s, append([]string{"reset r1 1-0"}, tt.want...)...)
			b.quiet(s)
		})
	}
}

// Where the log has lost a run that goes on, a position in it is as good as it was: it is to be tried again.
func TestCursorInARunThatTheLogHasLost(t *testing.T) {
	b := setup(t, hub.Config{})
	b.whole(1)
	b.begin()
	b.emit(3)
	b.shelf.last = 2
	b.drop(2)
	if _, err := b.hub.Subscribe(t.Context(), b.id, hub.Options{After: cursor(2, 2)}); !errors.Is(err, thread.ErrUnavailable) {
		t.Fatalf("got %v", err)
	}
	if n := b.hub.Watched(); n != 0 {
		t.Errorf("%d threads are still watched", n)
	}
}

func TestDamagedRunDoesNotHideItsNeighbours(t *testing.T) {
	b := setup(t, hub.Config{Damaged: func(r thread.Run) []thread.Event {
		return []thread.Event{{First: 1, Last: r.LastSeq, Data: []byte("damaged " + r.ID)}}
	}})
	b.whole(1)
	b.whole(1)
	b.whole(1)
	b.shelf.runs[1].Events = nil
	s := b.subscribe(hub.Options{})
	b.expect(s, "r1 1-0>1-2: 1.1", "r2 2-0>2-2: damaged r2", "r3 3-0>3-2: 3.1", "caught up 3-2")
}

func TestDeletedThread(t *testing.T) {
	b := setup(t, hub.Config{})
	b.begin()
	b.emit(1)
	s := b.subscribe(hub.Options{})
	b.expect(s, "r1 1-0>1-1: 1.1", "caught up 1-1")
	b.emit(1)
	b.expect(s, "r1 1-1>1-2: 1.2")
	b.must(logtest.Wipe(t.Context(), b.log, b.id))
	if _, err := s.Next(t.Context()); !errors.Is(err, thread.ErrDeleted) {
		t.Fatalf("got %v", err)
	}
	s = b.subscribe(hub.Options{})
	b.expect(s, "caught up 0-0")
}

func TestSyncTellsOnceMore(t *testing.T) {
	b := setup(t, hub.Config{})
	s := b.subscribe(hub.Options{})
	b.expect(s, "caught up 0-0")
	b.begin()
	b.emit(2)
	s.Sync()
	b.expect(s, "r1 1-0>1-2: 1.1 1.2", "caught up 1-2")
	s.Sync()
	s.Sync()
	b.expect(s, "caught up 1-2")
	b.quiet(s)
}

func TestReadPages(t *testing.T) {
	b := setup(t, hub.Config{Compact: pairs})
	b.whole(4)
	b.begin()
	b.emit(5)
	var got []string
	after := thread.Cursor{}
	for more := true; more; {
		batches, left, err := b.hub.Read(t.Context(), b.id, hub.Options{After: after, Replay: hub.Raw}, 2)
		b.must(err)
		for _, batch := range batches {
			for _, e := range batch.Events {
				got = append(got, string(e))
			}
			after = batch.To
		}
		more = left
	}
	if want := "1.1 1.2 1.3 1.4 2.1 2.2 2.3 2.4 2.5"; strings.Join(got, " ") != want {
		t.Errorf("got %v", got)
	}
	if after != cursor(2, 5) {
		t.Errorf("ends at %s", after)
	}
	s := b.subscribe(hub.Options{After: after})
	b.expect(s, "caught up 2-5")
	if b.hub.Watched() != 1 {
		t.Error("reading pages left a tail behind")
	}
}

func TestIdleThreadCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, hub.Config{Idle: time.Second})
		s := b.subscribe(hub.Options{})
		b.expect(s, "caught up 0-0")
		b.whole(3)
		<-time.After(2 * time.Second)            // of the bubble's clock: the ring is freed, and nobody is harmed
		b.follow(s, cursor(1, 4), "1.1+1.2 1.3") // it is in history by now
		s.Close()
		synctest.Wait()
		if n := b.hub.Watched(); n != 0 {
			t.Errorf("%d threads are still watched", n)
		}
	})
}

func TestNextWaitsForWhatComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, hub.Config{})
		s := b.subscribe(hub.Options{})
		b.expect(s, "caught up 0-0")
		got := make(chan string)
		go func() {
			batch, err := s.Next(context.Background())
			if err != nil {
				got <- err.Error()
				return
			}
			got <- string(batch.Events[0])
		}()
		synctest.Wait()
		select {
		case v := <-got:
			t.Fatalf("got %s out of nothing", v)
		default:
		}
		b.begin()
		b.emit(1)
		if v := <-got; v != "1.1" {
			t.Errorf("got %s", v)
		}
	})
}

func TestCloseEndsSubscriptions(t *testing.T) {
	b := setup(t, hub.Config{})
	s := b.subscribe(hub.Options{})
	b.expect(s, "caught up 0-0")
	b.hub.Close()
	if _, err := s.Next(t.Context()); !errors.Is(err, thread.ErrDraining) {
		t.Errorf("got %v", err)
	}
	if _, err := b.hub.Subscribe(t.Context(), b.id, hub.Options{}); !errors.Is(err, thread.ErrDraining) {
		t.Errorf("got %v", err)
	}
}
