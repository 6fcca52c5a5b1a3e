package web

import "context"

// places bounds how much of one kind is done at a time; it holds one value for each that is being done.
type places chan struct{}

// take waits for a place, for a while, and returns what gives it back.
func (p places) take(ctx context.Context) (done func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, viewWait, errBusy)
	defer cancel()
	select {
	case p <- struct{}{}:
		return p.free, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// tryTake is take without waiting.
func (p places) tryTake() (done func(), ok bool) {
	select {
	case p <- struct{}{}:
		return p.free, true
	default:
		return nil, false
	}
}

func (p places) free() { <-p }
