package client

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// Refusal is an answer that is none of those hoped for, over HTTP or on the socket (docs/protocol.md, section 7).
type Refusal struct {
	Status  int    // of HTTP; 0 on the socket
	Code    string // empty if the answer is not one of threadcast
	Message string // for people
	RunID   string // of which it speaks, if it does
	body    string
}

func newRefusal(status int, body []byte) *Refusal {
	r := &Refusal{Status: status, body: string(body)}
	var problem struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		RunID   string `json:"runId"`
	}
	if json.Unmarshal(body, &problem) == nil {
		r.Code, r.Message, r.RunID = problem.Code, problem.Message, problem.RunID
	}
	return r
}

func (r *Refusal) Error() string {
	if r.Status == 0 {
		return fmt.Sprintf("refused: %.200s", r.body)
	}
	return fmt.Sprintf("answered %d: %.200s", r.Status, r.body)
}

// Again tells whether it is worth asking once more, after a pause.
func (r *Refusal) Again() bool {
	return r.Status == http.StatusServiceUnavailable || r.Status == http.StatusBadGateway ||
		r.Code == "unavailable" || r.Code == "draining"
}
