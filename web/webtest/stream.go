package webtest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Event is one server-sent event, or one comment.
type Event struct {
	ID      string
	Name    string // empty for an ordinary event
	Data    string
	Comment string
	Retry   string
}

// Stream reads an answer of server-sent events in the strict form that AG-UI 1.0, section 15.2 asks of producers. Its methods
// belong to one goroutine.
type Stream struct {
	Response *http.Response

	lines *bufio.Reader
	last  string
}

// NewStream reads an answer, which has to be a stream.
func NewStream(response *http.Response) (*Stream, error) {
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "text/event-stream" {
		text, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		return nil, fmt.Errorf("no stream: %s, %s: %.500s", response.Status, response.Header.Get("Content-Type"), text)
	}
	return &Stream{Response: response, lines: bufio.NewReader(response.Body)}, nil
}

// LastID is the position of the last event that had one: what a client comes back with as Last-Event-ID.
func (s *Stream) LastID() string { return s.last }

// Close ends the request.
func (s *Stream) Close() { _ = s.Response.Body.Close() }

// Next returns what comes next, comments included. At the proper end of the answer the error is [io.EOF]; for one that was
// cut, within a frame or between two, it is another.
func (s *Stream) Next() (Event, error) {
	var e Event
	data, any := []string(nil), false
	for {
		line, err := s.lines.ReadString('\n')
		switch {
		case errors.Is(err, io.EOF) && (line != "" || any):
			return e, io.ErrUnexpectedEOF
		case err != nil:
			return e, err
		case strings.Contains(line, "\r"):
			return e, fmt.Errorf("a carriage return in %q", line)
		}
		if line = strings.TrimSuffix(line, "\n"); line == "" {
			if !any {
				return e, errors.New("an empty frame")
			}
			e.Data = strings.Join(data, "\n")
			return e, nil
		}
		any = true
		name, value, _ := strings.Cut(line, ": ")
		switch name {
		case "data":
			data = append(data, value)
		case "id":
			e.ID, s.last = value, value
		case "event":
			e.Name = value
		case "retry":
			e.Retry = value
		case "":
			e.Comment = value
		default:
			return e, fmt.Errorf("a line %q", line)
		}
	}
}

// Event returns the next event, and passes comments over.
func (s *Stream) Event() (Event, error) {
	for {
		e, err := s.Next()
		if err != nil || e.Data != "" {
			return e, err
		}
	}
}
