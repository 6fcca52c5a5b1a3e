package redislog

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// grace is for how long after its data were lost Redis gives a lease to nobody but those who held one before: every
// node learns of the loss from its next probe, and renews what it holds.
const grace = 3 * time.Second

// Acquire takes the thread's lease for ttl. A [thread.RunningError] tells who holds it; its owner is no exception. An
// expired lease is taken over, with a greater token, and its former holder is woken. Tokens are times of the server, in
// microseconds, and greater than every token before. For three seconds after Redis lost its data it returns
// [thread.ErrUnavailable], so that whoever held the thread can say so.
func (l *Log) Acquire(ctx context.Context, claim thread.Claim, ttl time.Duration) (thread.Lease, error) {
	group := groupOf(claim.Thread)
	woken := l.holders.expect(claim.Thread)
	list, err := l.runFor(ctx, call{script: l.scripts.acquire, keys: []string{
		l.keys.lock(claim.Thread), l.keys.counters(group), l.keys.leases(group), l.keys.news(group),
	}, args: []any{
		string(claim.Thread), string(claim.RunID), claim.Owner, micros(ttl), l.opts.Active.Milliseconds(),
		l.first[group], micros(grace),
	}})
	var got thread.Lease
	if err == nil {
		got, err = acquired(claim, fields(list))
	}
	if err != nil {
		woken()
		return thread.Lease{}, fmt.Errorf("acquire thread %s: %w", claim.Thread, err)
	}
	got.Asked = l.holders.note(claim.Thread, got.Token, ttl)
	if woken() {
		l.holders.wake(claim.Thread)
	}
	return got, nil
}

// acquired reads the reply to an acquire.
func acquired(claim thread.Claim, answer []string) (thread.Lease, error) {
	switch answer[0] {
	case "got":
		return readLease(claim.Thread, []string{answer[1], string(claim.RunID), claim.Owner, answer[2], answer[3]})
	case "held":
		since, err := readTime(answer[3])
		if err != nil {
			return thread.Lease{}, err
		}
		return thread.Lease{}, &thread.RunningError{RunID: thread.RunID(answer[1]), Owner: answer[2], Since: since}
	}
	return thread.Lease{}, errYoung
}

// Renew prolongs the lease by ttl from now and brings the wish to stop, if there is one. A lease that expired and that
// nobody took is renewed like any other, and so is one that Redis lost with all its data; [thread.ErrLeaseLost] if
// another holds the thread or nobody does. The run's entries live longer by it.
func (l *Log) Renew(ctx context.Context, ls thread.Lease, ttl time.Duration) (thread.Lease, error) {
	group := groupOf(ls.Thread)
	list, err := l.runFor(ctx, call{script: l.scripts.renew, keys: []string{
		l.keys.lock(ls.Thread), l.keys.counters(group), l.keys.leases(group), l.keys.active(ls.Thread),
	}, args: []any{
		string(ls.Thread), string(ls.RunID), ls.Owner, micros(ttl), l.opts.Active.Milliseconds(), ls.Token,
		ls.Acquired.UnixMicro(), l.opts.Active.Milliseconds(), l.keys.streams(ls.Thread), l.opts.Lock.Milliseconds(),
	}})
	var got thread.Lease
	if err == nil {
		if answer := fields(list); answer[0] == "held" {
			got, err = readLease(ls.Thread, answer[1:])
			got.Stop = readStop(got.RunID, list[1:])
		} else {
			err = thread.ErrLeaseLost
		}
	}
	if err != nil {
		l.lanes[group].leaveHome(ls.Thread)
		if errors.Is(err, thread.ErrLeaseLost) {
			l.holders.drop(ls)
		}
		return thread.Lease{}, fmt.Errorf("renew the lease of thread %s: %w", ls.Thread, err)
	}
	got.Asked = l.holders.note(ls.Thread, ls.Token, ttl)
	return got, nil
}

// Release gives the lease up. Releasing a lease that is no longer held changes nothing and is no error.
func (l *Log) Release(ctx context.Context, ls thread.Lease) error {
	_, err := l.runFor(ctx, call{script: l.scripts.release, keys: []string{
		l.keys.lock(ls.Thread), l.keys.leases(groupOf(ls.Thread)),
	}, args: []any{string(ls.Thread), ls.Token, l.opts.Lock.Milliseconds()}})
	l.lanes[groupOf(ls.Thread)].leaveHome(ls.Thread)
	l.holders.drop(ls)
	if err != nil {
		return fmt.Errorf("release the lease of thread %s: %w", ls.Thread, err)
	}
	return nil
}

// readLease reads {token, run id, owner, acquired, deadline...}.
func readLease(id thread.ID, f []string) (thread.Lease, error) {
	if len(f) < 5 {
		return thread.Lease{}, fmt.Errorf("%w: the record of the lease of thread %s is %q", thread.ErrCorrupt, id, f)
	}
	token, err := strconv.ParseUint(f[0], 10, 64)
	acquired, errAcquired := readTime(f[3])
	deadline, errDeadline := readTime(f[4])
	if err := errors.Join(err, errAcquired, errDeadline); err != nil {
		return thread.Lease{}, fmt.Errorf("%w: the record of the lease of thread %s: %w", thread.ErrCorrupt, id, err)
	}
	return thread.Lease{
		Claim: thread.Claim{Thread: id, RunID: thread.RunID(f[1]), Owner: f[2]},
		Token: token, Acquired: acquired, Deadline: deadline,
	}, nil
}

// readStop reads the wish to stop from the sixth field of a lease.
func readStop(run thread.RunID, list []any) *thread.StopRequest {
	if len(list) < 6 {
		return nil // what is nil at the end of a list is left out
	}
	by, ok := list[5].(string)
	if !ok {
		return nil
	}
	return &thread.StopRequest{RunID: run, By: by}
}

func readTime(s string) (time.Time, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	return time.UnixMicro(n), err
}
