package agent

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/threadcast/threadcast/runner"
)

const (
	eventStream = "text/event-stream"
	excerpt     = 200     // bytes of a bad frame that go to the log
	bodyExcerpt = 2 << 10 // bytes of the body of a refusal that go to the log
	bodyWait    = time.Second
)

// checkResponse tells whether an answer can be an event stream. Whatever may be one is read as one, as the
// reference client does (AG-UI 1.0, section 15.2 H1 and H2).
func checkResponse(resp *http.Response) error {
	if resp.StatusCode < 200 || resp.StatusCode > 299 || resp.StatusCode == http.StatusNoContent {
		return &runner.AgentError{
			Code:    "agent_status",
			Message: fmt.Sprintf("The agent answered HTTP %d.", resp.StatusCode),
			Err:     fmt.Errorf("HTTP %s: %q", resp.Status, beginning(resp.Body, bodyExcerpt)),
		}
	}
	if coding := resp.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return notAStream(fmt.Errorf("content encoding %q was not asked for", coding))
	}
	contentType := resp.Header.Get("Content-Type")
	if !mayBeStream(contentType) {
		return notAStream(fmt.Errorf("content type %q", contentType))
	}
	return nil
}

// isJSON tells whether an answer calls itself JSON, which a stream of events may do, but seldom does.
func isJSON(resp *http.Response) bool {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return kind == "application/json"
}

// beginning returns what a refusal says, as far as it comes soon. It closes the body if it does not.
func beginning(body io.ReadCloser, size int64) []byte {
	impatience := time.AfterFunc(bodyWait, func() { _ = body.Close() })
	defer impatience.Stop()
	text, _ := io.ReadAll(io.LimitReader(body, size))
	return text
}

// mayBeStream is false for the types that are certainly something else.
func mayBeStream(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		kind = strings.ToLower(contentType)
	}
	family, name, _ := strings.Cut(kind, "/")
	switch family {
	case "image", "audio", "video", "font", "multipart":
		return false
	}
	switch name {
	case "html", "xhtml+xml", "pdf", "zip", "gzip":
		return false
	}
	return !strings.Contains(name, "proto")
}

func notAStream(err error) error {
	return &runner.AgentError{
		Code:    "agent_content_type",
		Message: "The agent did not answer with an event stream.",
		Err:     err,
	}
}

// unreachable is for a request that got no answer.
func unreachable(err error) error {
	message := "The agent could not be reached."
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		message = "The agent did not answer in time."
	}
	return &runner.AgentError{Code: "agent_unreachable", Message: message, Err: withoutURL(err)}
}

// withoutURL takes off the URL that package net/http puts around an error: its query may hold a credential.
func withoutURL(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// broken is for a stream that cannot be read on.
func (a *AGUI) broken(err error) error {
	if errors.Is(err, errFrameSize) {
		return tooLarge(err, a.maxEvent)
	}
	return truncated(err)
}

func tooLarge(err error, limit int) error {
	return &runner.AgentError{
		Code:    "event_too_large", // as the runner calls it
		Message: "The agent sent an event that is too large.",
		Err:     fmt.Errorf("%w of %d bytes", err, limit),
	}
}

func truncated(err error) error {
	return &runner.AgentError{
		Code:    "agent_truncated",
		Message: "The connection to the agent broke off.",
		Err:     err,
	}
}

// notAnEvent is for a frame that is no event. If the stream ended in it, it was cut.
func notAnEvent(frame []byte, err error) error {
	if len(frame) > excerpt {
		frame = frame[:excerpt]
	}
	err = fmt.Errorf("%w: %q", err, frame)
	if errors.Is(err, errUnterminated) {
		return truncated(err)
	}
	return &runner.AgentError{
		Code:    "agent_bad_stream",
		Message: "The agent sent something that is not an event.",
		Err:     err,
	}
}
