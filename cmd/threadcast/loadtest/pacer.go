package loadtest

import (
	"context"
	"sync"
	"time"

	"github.com/threadcast/threadcast/cmd/threadcast/client"
)

// pacer spaces what many goroutines do.
type pacer struct {
	gap time.Duration

	mu   sync.Mutex
	next time.Time
}

func newPacer(perSecond int) *pacer {
	if perSecond == 0 {
		return &pacer{}
	}
	return &pacer{gap: time.Second / time.Duration(perSecond)}
}

// wait returns when it is the caller's turn, or with the cause of ctx.
func (p *pacer) wait(ctx context.Context) error {
	p.mu.Lock()
	now := time.Now()
	if p.next.Before(now) {
		p.next = now
	}
	turn := p.next.Sub(now)
	p.next = p.next.Add(p.gap)
	p.mu.Unlock()
	return client.Pause(ctx, turn)
}
