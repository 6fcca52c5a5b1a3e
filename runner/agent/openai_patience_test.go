package agent

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/threadcast/threadcast/runner"
)

// transport answers in place of a network, so that time in a test is not the world's.
type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(req *http.Request) (*http.Response, error) { return t(req) }

func newPatient(t *testing.T, answer transport) *OpenAI {
	t.Helper()
	o, err := NewOpenAI("http://localhost/v1", OpenAIOptions{Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	o.client.Transport = answer
	return o
}

func response(status int, body io.ReadCloser, header http.Header) *http.Response {
	return &http.Response{StatusCode: status, Header: header, Body: body}
}

var patientInput = runner.Input{ThreadID: "t", RunID: "r", JSON: []byte(`{"messages":[{"id":"u","role":"user","content":"Hi"}]}`)}

// A server that does not end its stream after the model has said why it stopped is not waited for.
func TestOpenAIDoesNotWaitForAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body, server := io.Pipe()
		o := newPatient(t, func(*http.Request) (*http.Response, error) { return response(200, body, nil), nil })
		go func() {
			_, _ = io.WriteString(server, `data: {"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}`+"\n\n")
		}()
		began := time.Now()
		var last string
		err := o.Run(t.Context(), patientInput, func(event []byte) error { last = string(event); return nil })
		if err != nil || !strings.Contains(last, "RUN_FINISHED") {
			t.Errorf("Run returned %v after %s", err, last)
		}
		if took := time.Since(began); took != lastWords {
			t.Errorf("it took %s", took)
		}
	})
}

// A pause before a repetition is as long as the server asks for, and ends when the run does.
func TestOpenAIPausesBeforeItAsksAgain(t *testing.T) {
	busy := func() *http.Response {
		return response(429, io.NopCloser(strings.NewReader("{}")), http.Header{"Retry-After": {"7"}})
	}
	t.Run("as long as it is told", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var asked []time.Duration
			began := time.Now()
			o := newPatient(t, func(*http.Request) (*http.Response, error) {
				asked = append(asked, time.Since(began))
				if len(asked) == 1 {
					return busy(), nil
				}
				return response(200, io.NopCloser(strings.NewReader("data: [DONE]\n\n")), nil), nil
			})
			if err := o.Run(t.Context(), patientInput, func([]byte) error { return nil }); err != nil {
				t.Fatal(err)
			}
			if len(asked) != 2 || asked[1] != 7*time.Second {
				t.Errorf("the server was asked at %v", asked)
			}
		})
	})
	t.Run("until the run is stopped", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			stopped := errors.New("stopped by somebody")
			ctx, cancel := context.WithCancelCause(t.Context())
			o := newPatient(t, func(*http.Request) (*http.Response, error) { return busy(), nil })
			began := time.Now()
			time.AfterFunc(time.Second, func() { cancel(stopped) })
			err := o.Run(ctx, patientInput, func([]byte) error { return nil })
			if took := time.Since(began); err != stopped || took != time.Second {
				t.Errorf("Run returned %v after %s", err, took)
			}
		})
	})
}
