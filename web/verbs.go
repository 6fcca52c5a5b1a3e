package web

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/web/wire"
)

// stopTimeout bounds how long a caller waits for a run to stop.
const stopTimeout = 30 * time.Second

// handle answers a push of a joined client. It does so even if the client has left the topic meanwhile.
func (v *viewer) handle(f wire.Frame) {
	if !v.joined {
		v.ss.refuse(f, errUnmatched)
		return
	}
	var response any
	var err error
	switch ctx := v.ss.ctx; f.Event {
	case "run":
		response, err = v.ss.srv.run(ctx, v.id, f.Payload, v.ss.caller)
	case "stop", "stop_run":
		// A stop is carried out even if its socket is gone by now.
		response, err = v.ss.srv.stop(context.WithoutCancel(ctx), v.id, f.Payload, v.ss.caller)
	case "status":
		response, err = v.ss.srv.status(ctx, v.id)
	case "sync":
		response, err = v.sync(f.Payload)
	default:
		err = fmt.Errorf("%w: %q; a thread takes run, stop, status and sync", errUnknownEvent, f.Event)
	}
	var text []byte
	if err == nil {
		text, err = json.Marshal(response)
	}
	if err != nil {
		v.ss.refuse(f, err)
		return
	}
	v.ss.reply(f, "ok", text)
}

type runReply struct {
	RunID  thread.RunID `json:"runId"`
	Cursor string       `json:"cursor"`
	Queued int          `json:"queued,omitempty"` // its place in the queue
}

func (s *Server) run(ctx context.Context, id thread.ID, payload []byte, by caller) (runReply, error) {
	req, err := parseRun(id, payload)
	if err != nil {
		return runReply{}, err
	}
	acc, err := s.start(ctx, req, by)
	return runReply{RunID: acc.RunID, Cursor: acc.Cursor.String(), Queued: acc.Queued}, err
}

// start has a run accepted, unless the server drains.
func (s *Server) start(ctx context.Context, req thread.Request, by caller) (thread.Accepted, error) {
	if s.guests.leaving.Load() {
		return thread.Accepted{}, thread.ErrDraining
	}
	req.User, req.By = by.User, by.name()
	return s.Runs.Run(ctx, req)
}

type stopReply struct {
	Stopped bool         `json:"stopped"`
	RunID   thread.RunID `json:"runId,omitempty"`
	Cursor  string       `json:"cursor,omitempty"`
}

func (s *Server) stop(ctx context.Context, id thread.ID, payload []byte, by caller) (stopReply, error) {
	run, err := parseStop(payload)
	if err != nil {
		return stopReply{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, stopTimeout, thread.ErrUnavailable)
	defer cancel()
	st, err := s.Runs.Stop(ctx, id, run, by.name())
	if err != nil || !st.Stopped {
		return stopReply{}, err
	}
	reply := stopReply{Stopped: true, RunID: st.RunID}
	if st.Cursor != (thread.Cursor{}) { // else it waited in the queue
		reply.Cursor = st.Cursor.String()
	}
	return reply, nil
}

// statusReply is how a thread stands, in the answers to join and status.
type statusReply struct {
	Running        bool            `json:"running"`
	RunID          *thread.RunID   `json:"runId"`
	AgentID        *string         `json:"agentId"`
	Cursor         string          `json:"cursor"`
	LastEventAgeMs *int64          `json:"lastEventAgeMs"`
	StartedAt      *time.Time      `json:"startedAt"`
	Outcome        *thread.Outcome `json:"outcome"` // of the latest run, when none is active
	Pending        json.RawMessage `json:"pending"`
	PendingCalls   json.RawMessage `json:"pendingToolCalls"`
	Queue          []queuedView    `json:"queue"`
}

// queuedView is a run that waits for its turn.
type queuedView struct {
	RunID    thread.RunID `json:"runId"`
	AgentID  string       `json:"agentId"`
	Title    string       `json:"title"`
	QueuedAt time.Time    `json:"queuedAt"`
}

// listOr is a JSON array, an empty one in place of none.
func listOr(list []byte) json.RawMessage {
	if list == nil {
		return json.RawMessage("[]")
	}
	return list
}

func replyOf(st thread.Status) statusReply {
	r := statusReply{
		Running: st.Running, Cursor: st.Cursor.String(), Pending: listOr(st.Pending), PendingCalls: listOr(st.Calls),
		Queue: make([]queuedView, len(st.Queue)),
	}
	for i, q := range st.Queue {
		r.Queue[i] = queuedView{RunID: q.RunID, AgentID: q.Agent, Title: q.Title, QueuedAt: q.Since.UTC()}
	}
	if st.RunID != "" {
		started := st.Started.UTC()
		r.RunID, r.AgentID, r.StartedAt = &st.RunID, &st.Agent, &started
	}
	if st.Running && !st.LastEvent.IsZero() {
		age := max(0, time.Since(st.LastEvent).Milliseconds())
		r.LastEventAgeMs = &age
	}
	if !st.Running && st.Latest != nil {
		r.Outcome = &st.Latest.End.Outcome
	}
	return r
}

func (s *Server) status(ctx context.Context, id thread.ID) (statusReply, error) {
	st, err := s.Runs.Status(ctx, id)
	return replyOf(st), err
}

type joinReply struct {
	statusReply
	Cursor  string `json:"cursor"` // from which the subscription goes on
	Resumed bool   `json:"resumed"`
	Role    string `json:"role"`
}

// sync makes caught_up come once more. The socket delivers in order, so what the server has sent is never missing:
// it sends on from there, whatever position within the membership the client names.
func (v *viewer) sync(payload []byte) (any, error) {
	after, ok, err := parseSync(payload)
	if err != nil {
		return nil, err
	}
	if ok && after.Before(v.start) {
		return nil, fmt.Errorf("%w: %s is before this membership began, at %s; join again to go back",
			thread.ErrBadCursor, after, v.start)
	}
	v.sub.Sync()
	return struct{}{}, nil
}
