package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// What web itself refuses.
var (
	errUnknownEvent  = errors.New("unknown event")
	errUnmatched     = errors.New("unmatched topic")
	errTooManyTopics = errors.New("too many topics on one socket")
	errRateLimited   = errors.New("too many requests at once")
	errBusy          = fmt.Errorf("%w: too many views of threads are being made; try again in a moment", errRateLimited)
	errAsked         = fmt.Errorf("%w: too many suggestions are being made; try again in a moment", errRateLimited)
	errForeign       = errors.New("sockets are let in from this server's own origin, and from those that it was told to allow")
)

// failure is a row of the error table.
type failure struct {
	err    error
	code   string
	status int
}

// failures says how each error is called on socket and HTTP. The first row that matches wins; what matches none is
// "internal", and only the log learns more. docs/protocol.md lists the codes.
var failures = []failure{
	{thread.ErrAnswered, "already_answered", http.StatusConflict},
	{thread.ErrRunning, "thread_busy", http.StatusConflict},
	{thread.ErrQueued, "thread_busy", http.StatusConflict},
	{thread.ErrQueueFull, "queue_full", http.StatusTooManyRequests},
	{thread.ErrUnknownAgent, "unknown_agent", http.StatusNotFound},
	{thread.ErrBadCursor, "bad_cursor", http.StatusBadRequest},
	{thread.ErrRunIDUsed, "run_id_used", http.StatusConflict},
	{thread.ErrTooLarge, "too_large", http.StatusRequestEntityTooLarge},
	{thread.ErrBadInput, "bad_input", http.StatusBadRequest},
	{thread.ErrNotFound, "not_found", http.StatusNotFound},
	{thread.ErrDeleted, "thread_deleted", http.StatusGone},
	{thread.ErrDraining, "draining", http.StatusServiceUnavailable},
	{thread.ErrUnfinished, "unavailable", http.StatusServiceUnavailable},
	{thread.ErrLeaseLost, "unavailable", http.StatusServiceUnavailable},
	{thread.ErrUnavailable, "unavailable", http.StatusServiceUnavailable},
	{thread.ErrFull, "unavailable", http.StatusServiceUnavailable},
	{thread.ErrCorrupt, "damaged", http.StatusInternalServerError},
	{thread.ErrEnded, "run_ended", http.StatusConflict},
	{thread.ErrGap, "internal", http.StatusInternalServerError},
	{errUnknownEvent, "unknown_event", http.StatusBadRequest},
	{errUnmatched, "unmatched_topic", http.StatusNotFound},
	{errTooManyTopics, "too_many_topics", http.StatusTooManyRequests},
	{errRateLimited, "rate_limited", http.StatusTooManyRequests},
	{errForeign, "not_authorized", http.StatusForbidden},
	{ErrUnidentified, "not_authenticated", http.StatusUnauthorized},
	{errNoTicket, "not_authenticated", http.StatusUnauthorized},
	{errTicket, "not_authorized", http.StatusForbidden},
	{errTicketSpent, "not_authorized", http.StatusForbidden},
}

// words is what a person reads of err: its first line, which is without what happened besides, and without the name
// of a kind of error that the code says already.
func (f failure) words(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	switch f.err {
	//nolint:errorlint // a row of the table is compared, not an error that happened
	case thread.ErrQueueFull:
		return f.err.Error()
	case thread.ErrBadInput, thread.ErrBadCursor, thread.ErrTooLarge, thread.ErrNotFound, ErrUnidentified:
		if _, detail, ok := strings.Cut(text, f.err.Error()+": "); ok {
			return detail
		}
	}
	return text
}

// Problem is an error as clients see it, on socket and HTTP alike.
type Problem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	// RunID and AgeMs say which run keeps a thread busy, and since when; or RunID which run brought the answer.
	RunID string `json:"runId,omitempty"`
	AgeMs *int64 `json:"ageMs,omitempty"`
	// Reason repeats the problem where phoenix.js users look for it.
	Reason string `json:"reason,omitempty"`

	status int
}

// problem turns err into what a client may see of it.
func problem(err error) Problem {
	p := Problem{
		Code: "internal", Message: "Something went wrong inside the server. Its log says what.",
		status: http.StatusInternalServerError,
	}
	for _, f := range failures {
		if errors.Is(err, f.err) {
			p.Code, p.status = f.code, f.status
			if f.status < http.StatusInternalServerError {
				p.Message = f.words(err)
			}
			break
		}
	}
	switch p.Code {
	case "draining":
		p.Message = "The server is shutting down. Try again in a moment."
	case "unavailable":
		p.Message = "The server cannot reach its storage. Try again in a moment."
	case "damaged":
		p.Message = "Stored data of this thread is damaged. The server's log says where."
	case "unmatched_topic":
		p.Reason = "unmatched topic" // as Phoenix answers
	}
	var busy *thread.RunningError
	if errors.As(err, &busy) {
		age := time.Since(busy.Since).Milliseconds()
		p.RunID, p.AgeMs = string(busy.RunID), &age
	}
	var answered *thread.AnsweredError
	if errors.As(err, &answered) {
		p.RunID, p.Message = string(answered.RunID), answered.Error()
	}
	return p
}

// internal tells whether the error is one that an operator should read about.
func (p Problem) internal() bool {
	return p.Code == "internal" || p.Code == "damaged" || p.Code == "unavailable"
}

func (p Problem) json() []byte {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(p); err != nil {
		panic(err) // strings and a number
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n"))
}
