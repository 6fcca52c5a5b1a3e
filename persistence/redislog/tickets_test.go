package redislog_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

func TestATicketIsClaimedOnceAmongAllNodes(t *testing.T) {
	addr, prefix := sharedServer(t).Addr(), newPrefix()
	one, two := open(t, addr, prefix).Tickets(), open(t, addr, prefix).Tickets()
	var firsts atomic.Int32
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			tickets := one
			if i%2 == 1 {
				tickets = two
			}
			first, err := tickets.Claim(t.Context(), "n1", time.Minute)
			if err != nil {
				t.Error(err)
			}
			if first {
				firsts.Add(1)
			}
		})
	}
	wg.Wait()
	if n := firsts.Load(); n != 1 {
		t.Errorf("%d claims were the first", n)
	}
	for name, tickets := range map[string]interface {
		Claim(context.Context, string, time.Duration) (bool, error)
	}{"another ticket": one, "another installation": open(t, addr, newPrefix()).Tickets()} {
		nonce := "n1"
		if name == "another ticket" {
			nonce = "n2"
		}
		if first, err := tickets.Claim(t.Context(), nonce, time.Minute); !first || err != nil {
			t.Errorf("%s: %t, %v", name, first, err)
		}
	}
}

func TestATicketIsForgottenAfterItsTime(t *testing.T) {
	server := sharedServer(t)
	tickets := open(t, server.Addr(), newPrefix()).Tickets()
	if first, err := tickets.Claim(t.Context(), "n1", 50*time.Millisecond); !first || err != nil {
		t.Fatalf("%t, %v", first, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for {
		first, err := tickets.Claim(ctx, "n1", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if first {
			return
		}
	}
}

func TestClaimingATicketTellsThatRedisIsAway(t *testing.T) {
	log := open(t, sharedServer(t).Addr(), newPrefix())
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := log.Tickets().Claim(t.Context(), "n1", time.Minute); !errors.Is(err, thread.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}
