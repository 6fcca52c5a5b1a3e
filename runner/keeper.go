package runner

import (
	"context"
	"errors"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// kept is told by the keeper what becomes of a lease. Its methods must not block.
type kept interface {
	renewed(thread.Lease)
	// woken tells that the log has asked to look, and that it was not for a stop: it may have lost what it had.
	woken()
	asked(thread.StopRequest)
	lose(error)
}

// keeper renews a lease by a timer of its own, whatever the run does: silence is not death. Trust in the lease
// is counted from before each renewal was sent; when it is used up, the lease is lost, whatever the log would say.
type keeper struct {
	r      *Runner
	lease  thread.Lease
	holder kept
	deaf   bool // who wakes it is left to the keeper that follows
	cancel context.CancelFunc
	done   chan struct{}
}

func startKeeper(r *Runner, lease thread.Lease, holder kept) *keeper {
	k := &keeper{r: r, lease: lease, holder: holder}
	k.start()
	return k
}

// startDeafKeeper starts one for a lease whose run begins later. A wish to stop that a renewal brings is in what stop returns.
func startDeafKeeper(r *Runner, lease thread.Lease) *keeper {
	k := &keeper{r: r, lease: lease, holder: &holding{lease: lease}, deaf: true}
	k.start()
	return k
}

func (k *keeper) start() {
	ctx, cancel := context.WithCancel(context.Background())
	k.cancel, k.done = cancel, make(chan struct{})
	go k.run(ctx)
}

// stop ends the keeper and returns the lease as it is.
func (k *keeper) stop() thread.Lease {
	k.cancel()
	<-k.done
	return k.lease
}

func (k *keeper) run(ctx context.Context) {
	defer close(k.done)
	period := k.r.cfg.Lease / 3
	t := time.NewTimer(time.Until(k.lease.Deadline) - 2*period) // the lease may be older than the keeper
	defer t.Stop()
	woken := false
	for {
		asked := k.lease.Asked
		if k.deaf {
			asked = nil
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		case <-asked:
			woken = true
		}
		err := k.renew(ctx)
		switch {
		case err == nil:
			if woken && k.lease.Stop == nil {
				k.holder.woken()
			}
			woken = false
			t.Reset(period)
		case ctx.Err() != nil:
			return
		case errors.Is(err, thread.ErrLeaseLost) || !time.Now().Before(k.lease.Deadline):
			k.holder.lose(err)
			return
		default:
			t.Reset(min(period, time.Until(k.lease.Deadline), 250*time.Millisecond))
		}
	}
}

// renew asks once. A call that hangs does not use up the whole trust.
func (k *keeper) renew(ctx context.Context) error {
	asked := time.Now()
	ctx, cancel := context.WithTimeout(ctx, min(k.r.cfg.Lease/3, time.Until(k.lease.Deadline)))
	defer cancel()
	lease, err := k.r.Leaser.Renew(ctx, k.lease, k.r.cfg.Lease)
	if err != nil {
		return err
	}
	lease.Deadline = asked.Add(k.r.cfg.Lease)
	k.lease = lease
	k.holder.renewed(lease)
	if lease.Stop != nil {
		k.holder.asked(*lease.Stop)
	}
	return nil
}
