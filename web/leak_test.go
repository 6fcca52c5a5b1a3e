package web_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/threadcast/threadcast/runner/agenttest"
	"github.com/threadcast/threadcast/web/webtest"
)

func TestConnectingAndDisconnectingLeavesNothing(t *testing.T) {
	agent := agenttest.New(held(10))
	s := open(t, plan{agent: agent})
	s.start("t", "r1")
	<-agent.Mark("held")
	cycle := func(i int) error {
		c, err := webtest.Dial(within(t), s.url, nil)
		if err != nil {
			return err
		}
		defer c.Close()
		v := webtest.NewViewer("t", nil)
		if err := v.Join(within(t), c); err != nil {
			return err
		}
		if i%10 == 0 {
			if _, err := c.Join(within(t), fmt.Sprintf("thread:other-%d", i), nil); err != nil {
				return err
			}
		}
		switch i % 3 {
		case 0:
			if err := v.Until(within(t), webtest.CaughtUp); err != nil {
				return err
			}
			return v.Channel().Leave(within(t))
		case 1:
			c.Drop()
		}
		return nil
	}
	round := func(n int) {
		var wg sync.WaitGroup
		for worker := range 10 {
			wg.Go(func() {
				for i := worker; i < n; i += 10 {
					if err := cycle(i); err != nil {
						t.Errorf("cycle %d: %v", i, err)
						return
					}
				}
			})
		}
		wg.Wait()
	}
	settled := func() int {
		ctx := within(t)
		for s.web.Sessions() > 0 || s.hub.Watched() > 0 {
			if ctx.Err() != nil {
				t.Fatalf("%d sockets and %d watched threads are left", s.web.Sessions(), s.hub.Watched())
			}
			<-time.After(time.Millisecond)
		}
		return runtime.NumGoroutine()
	}
	round(50)
	before := settled()
	round(1000)
	ctx := within(t)
	for after := settled(); after > before+5; after = settled() { // connections of the database come and go
		<-time.After(10 * time.Millisecond)
		if ctx.Err() != nil {
			buf := make([]byte, 1<<16)
			t.Fatalf("%d goroutines, and %d before\n%s", after, before, buf[:runtime.Stack(buf, true)])
		}
	}
	t.Logf("measured: 1000 connections: %d goroutines before, %d after", before, settled())
	agent.Release("go")
}
