package runner

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// Stores are what a runner works on. One value may serve for several of them.
type Stores struct {
	Log     Log
	Heads   Heads
	Leaser  Leaser
	Owners  Owners
	History History
	Records Records
	Backlog Backlog
	Line    Line
	Story   Story
	Results Results // may be nil: then a result that is too large fails its run
	Board   Board   // may be nil
}

// Config holds what a runner may be told. The zero value of a field takes its default.
type Config struct {
	// Node names this process among others. Default "node". A random suffix makes each start another owner.
	Node string
	// Lease is for how long a run stays with a node that is not heard of. Default 15 s.
	Lease time.Duration
	// StopGrace is how long an agent may take to return once its context is done, before it is abandoned.
	// Default 1 s.
	StopGrace time.Duration
	// Retention is how long a finished run stays in the live log, for exact resumption. Default 5 min.
	Retention time.Duration
	// MaxRunTime is how long a run may take. Default 24 h.
	MaxRunTime time.Duration
	// MaxSilence is how long an agent may say nothing. Default 1 h.
	MaxSilence time.Duration
	// MaxEvents bounds the events of one run. Default 1,000,000.
	MaxEvents int
	// MaxEventBytes bounds one event. Default 8 MiB.
	MaxEventBytes int
	// MaxResultBytes bounds a TOOL_CALL_RESULT, which is kept apart if it is over MaxEventBytes. Default 64 MiB.
	MaxResultBytes int
	// MaxRunBytes bounds all events of one run, which are kept in memory until they are saved. Default 256 MiB.
	MaxRunBytes int
	// QueueBytes bounds what an agent may be ahead of the log before it has to wait. Default 4 MiB.
	QueueBytes int
	// MaxQueue bounds the requests that wait on one thread. Default 16.
	MaxQueue int
	// StopTerminal says with which event a stopped run ends. Default [StopFinished].
	StopTerminal StopTerminal
	// Logger gets a line when a run starts, ends, is stopped or reclaimed. Default [slog.Default].
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.Node = cmp.Or(c.Node, "node")
	c.Lease = cmp.Or(c.Lease, 15*time.Second)
	c.StopGrace = cmp.Or(c.StopGrace, time.Second)
	c.Retention = cmp.Or(c.Retention, 5*time.Minute)
	c.MaxRunTime = cmp.Or(c.MaxRunTime, 24*time.Hour)
	c.MaxSilence = cmp.Or(c.MaxSilence, time.Hour)
	c.MaxEvents = cmp.Or(c.MaxEvents, 1_000_000)
	c.MaxResultBytes = cmp.Or(c.MaxResultBytes, 64<<20)
	c.MaxEventBytes = cmp.Or(c.MaxEventBytes, 8<<20)
	c.MaxRunBytes = cmp.Or(c.MaxRunBytes, 256<<20)
	c.QueueBytes = cmp.Or(c.QueueBytes, 4<<20)
	c.MaxQueue = cmp.Or(c.MaxQueue, 16)
	c.StopTerminal = cmp.Or(c.StopTerminal, StopFinished)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

// Runner drives runs on one node.
type Runner struct {
	Stores
	cfg    Config
	owner  string
	agents map[string]Agent
	first  string // the agent of requests that name none

	floor     floor
	abandoned atomic.Int64
	looked    atomic.Int64 // how many of the unfinished runs have been looked at in this round
}

// New returns a runner. agents must not be empty; the first of the names given is the default agent.
func New(stores Stores, agents map[string]Agent, first string, cfg Config) *Runner {
	cfg = cfg.withDefaults()
	return &Runner{
		Stores: stores,
		cfg:    cfg,
		owner:  cfg.Node + "/" + rand.Text()[:8],
		agents: agents,
		first:  first,
		floor:  floor{slots: map[thread.ID]*slot{}},
	}
}

// Active returns how many runs this node is driving.
func (r *Runner) Active() int { return r.floor.active() }

// Abandoned returns how many agents have been given up because they ignore that their context is done, and still run.
func (r *Runner) Abandoned() int { return int(r.abandoned.Load()) }

// vacate gives the thread's lease up and lets the next one in.
func (r *Runner) vacate(lease thread.Lease, s *slot) {
	err := r.release(lease)
	r.floor.leave(lease.Thread, s)
	if err != nil {
		r.log(lease.Thread, lease.RunID).Warn("lease not released; it will expire", "err", err)
	}
}

// board tells what has changed on a thread, if there is anybody to tell.
func (r *Runner) board(tell func(Board)) {
	if r.Board != nil {
		tell(r.Board)
	}
}

// acquire takes a thread's lease. Trust in it is counted from before it was asked for.
func (r *Runner) acquire(ctx context.Context, claim thread.Claim) (thread.Lease, error) {
	asked := time.Now()
	lease, err := r.Leaser.Acquire(ctx, claim, r.cfg.Lease)
	if err != nil {
		return lease, fmt.Errorf("take the lease of thread %s: %w", claim.Thread, err)
	}
	lease.Deadline = asked.Add(r.cfg.Lease)
	return lease, nil
}

// release gives a lease up, whatever else was cancelled.
func (r *Runner) release(lease thread.Lease) error {
	ctx, cancel := context.WithTimeout(context.Background(), r.cfg.Lease)
	defer cancel()
	return r.Leaser.Release(ctx, lease)
}

func (r *Runner) log(id thread.ID, run thread.RunID) *slog.Logger {
	return r.cfg.Logger.With("thread", string(id), "run", string(run))
}

// Status tells how a thread stands. A thread that never was is idle.
func (r *Runner) Status(ctx context.Context, id thread.ID) (thread.Status, error) {
	var st thread.Status
	// Before the history is asked: a run that is gone from here is found there, and one that is saved meanwhile here.
	e := r.floor.execution(id)
	th, err := r.Records.Thread(ctx, id)
	if err != nil && !errors.Is(err, thread.ErrNotFound) {
		return st, fmt.Errorf("look up thread %s: %w", id, err)
	}
	st.Pending, st.Calls = th.Pending, th.Calls
	if th.Queued > 0 {
		if st.Queue, err = r.Line.Queue(ctx, id); err != nil {
			return st, err
		}
	}
	if th.Latest != nil {
		st.RunID, st.Agent, st.Started = th.Latest.ID, th.Latest.Agent, th.Latest.Accepted
		st.Cursor = th.Latest.Cursor()
		if !th.Latest.Ended.IsZero() {
			st.Latest = th.Latest
		}
	}
	if e != nil && !(e.hasEnded() && th.Latest != nil && th.Latest.Number > e.run.Number) { // else another node has the next
		e.describe(&st)
		return st, nil
	}
	lease, err := r.Owners.Holder(ctx, id)
	if err != nil && !errors.Is(err, thread.ErrNotFound) {
		return st, fmt.Errorf("find who holds thread %s: %w", id, err)
	}
	// A run that is being accepted is not recorded, and one that is being saved has ended.
	st.Running = err == nil && th.Latest != nil && th.Latest.ID == lease.RunID && st.Latest == nil
	if !st.Running {
		return st, nil
	}
	tip, err := r.scribe().tip(ctx, id)
	if err == nil && tip.RunID == st.RunID {
		st.Running, st.Cursor, st.LastEvent = !tip.ended, tip.Cursor(), lease.Seen
	}
	return st, err
}

// IsRunning tells whether a run is active on the thread, on this node or another. It is [Runner.Status] for who asks
// nothing else.
func (r *Runner) IsRunning(ctx context.Context, id thread.ID) (bool, error) {
	st, err := r.Status(ctx, id)
	return st.Running, err
}
