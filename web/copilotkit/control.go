package copilotkit

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/threadcast/threadcast/persistence/thread"
)

// The pushes on the topic of a thread.
const (
	PushEvent          = "ag_ui_event"
	PushReplayComplete = "replay_complete" // what was there at the join has been sent
	PushStreamIdle     = "stream_idle"     // nothing runs, and nothing more will come
	PushReplayFailed   = "replay_failed"   // what there is could not be read
)

// AppendControl appends the payload of [PushReplayComplete] and [PushStreamIdle], which say where the client stands. A client that
// has nothing of the thread is told no position.
func AppendControl(dst []byte, at Position) []byte {
	if at == (Position{}) {
		return append(dst, "{}"...)
	}
	dst = append(dst, `{"latestEventId":"`...)
	return append(at.Append(dst), `"}`...)
}

// Join is what a client asks for when it joins the topic of a thread.
type Join struct {
	Mode     string // "run" or "connect"
	RunID    string // of run
	LastSeen string // of connect: the position that it has; empty for nothing
}

// ParseJoin reads the payload of a join.
func ParseJoin(payload []byte) (Join, error) {
	var p struct {
		Mode     string  `json:"stream_mode"`
		RunID    *string `json:"run_id"`
		LastSeen *string `json:"last_seen_event_id"`
	}
	if err := json.Unmarshal(payload, &p); err != nil {
		return Join{}, fmt.Errorf("%w: the payload of the join is not what it should be", thread.ErrBadInput)
	}
	if p.Mode != "run" && p.Mode != "connect" {
		return Join{}, fmt.Errorf(`%w: stream_mode must be "run" or "connect"`, thread.ErrBadInput)
	}
	j := Join{Mode: p.Mode}
	if p.RunID != nil {
		j.RunID = *p.RunID
	}
	if p.LastSeen != nil {
		j.LastSeen = strings.TrimSpace(*p.LastSeen)
	}
	return j, nil
}
