package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/threadcast/threadcast/runner"
)

var errNoName = errors.New("a tool call has no name")

// complaint is what a server says in place of an answer, or in the middle of one.
type complaint struct {
	found   bool
	status  int // of HTTP, or 0
	code    string
	kind    string // the type of OpenAI's errors
	message string // in lower case
}

// readComplaint reads {"error":{...}}, {"error":"..."} and the {"object":"error",...} of vLLM.
func readComplaint(text []byte) complaint {
	whole := readMembers(text)
	raw := whole["error"]
	if raw == nil && whole.text("object") == "error" {
		raw = text
	}
	if raw == nil || string(raw) == "null" {
		return complaint{}
	}
	c := complaint{found: true}
	if m := readMembers(raw); m != nil {
		c.code, c.kind, c.message = m.text("code"), m.text("type"), m.text("message")
		if n, err := strconv.Atoi(string(m["code"])); err == nil && n >= http.StatusBadRequest && n < 600 {
			c.status = n
		}
	} else {
		_ = json.Unmarshal(raw, &c.message) // what is no string says nothing
	}
	c.message = strings.ToLower(c.message)
	return c
}

func (c complaint) isNamed(names ...string) bool {
	return slices.Contains(names, c.code) || slices.Contains(names, c.kind)
}

func (c complaint) says(phrases ...string) bool {
	return slices.ContainsFunc(phrases, func(p string) bool { return strings.Contains(c.message, p) })
}

// typed returns the failure that a complaint stands for, or nil. Servers agree on little but the status, so that names
// and, where there are none, words decide.
func (o *OpenAI) typed(c complaint) *runner.AgentError {
	switch {
	case c.status == http.StatusPaymentRequired || c.isNamed("insufficient_quota", "billing_hard_limit_reached", "billing_not_active"):
		return &runner.AgentError{Code: "model_quota", Message: "What is paid for this model is used up."}
	case c.isNamed("context_length_exceeded", "exceed_context_size_error") ||
		c.says("context length", "context size", "context window", "maximum context", "context the overflows", "prompt is too long"):
		return &runner.AgentError{Code: "model_context_length", Message: "The conversation is too long for the model."}
	case c.isNamed("content_filter", "content_policy_violation", "invalid_prompt"):
		return &runner.AgentError{Code: "model_content_filter", Message: "The model's server refuses this conversation for its content."}
	case c.isNamed("model_not_found") || c.status == http.StatusNotFound && c.says("model"):
		return &runner.AgentError{Code: "model_not_found", Message: "The model's server does not have this model."}
	case c.status == http.StatusUnauthorized && o.opts.Key == "":
		return &runner.AgentError{Code: "model_auth", Message: "The model's server asks for a key, and none is configured."}
	case c.status == http.StatusUnauthorized || c.isNamed("invalid_api_key", "authentication_error"):
		return &runner.AgentError{Code: "model_auth", Message: "The model's server does not accept the key."}
	case c.status == http.StatusForbidden || c.isNamed("permission_error"):
		return &runner.AgentError{Code: "model_auth", Message: "The model's server does not allow this."}
	case c.status == http.StatusTooManyRequests || c.isNamed("rate_limit_exceeded", "rate_limit_error"):
		return &runner.AgentError{Code: "model_rate_limited", Message: "The model takes no more requests for now."}
	}
	return nil
}

// refused is for a request that was answered with another status than 2xx.
func (o *OpenAI) refused(resp *http.Response, text []byte) error {
	c := readComplaint(text)
	c.status = resp.StatusCode
	e := o.typed(c)
	if e == nil {
		e = &runner.AgentError{Code: "agent_status", Message: fmt.Sprintf("The agent answered HTTP %d.", resp.StatusCode)}
	}
	if s := secondsToWait(resp.Header); e.Code == "model_rate_limited" && s > 0 {
		e.Message += fmt.Sprintf(" Try again in %d seconds.", s)
	}
	e.Err = fmt.Errorf("HTTP %s: %q", resp.Status, o.quotable(text))
	return e
}

// failed is for an error that the server reports although it began to answer.
func (o *OpenAI) failed(text []byte) error {
	e := o.typed(readComplaint(text))
	if e == nil {
		e = &runner.AgentError{Code: "model_failed", Message: "The model's server reported an error."}
	}
	e.Err = fmt.Errorf("the server reported %q", o.quotable(text))
	return e
}

// quotable is the beginning of what a server said, without the key, which some repeat.
func (o *OpenAI) quotable(text []byte) []byte {
	if o.opts.Key != "" {
		text = bytes.ReplaceAll(text, []byte(o.opts.Key), []byte("[key]"))
	}
	return text[:min(len(text), bodyExcerpt)]
}

// secondsToWait reads Retry-After; 0 if there is nothing that is worth telling.
func secondsToWait(header http.Header) int {
	const most = 24 * 60 * 60
	value := header.Get("Retry-After")
	n, err := strconv.Atoi(value)
	if err != nil {
		at, err := http.ParseTime(value)
		if err != nil {
			return 0
		}
		n = int(time.Until(at).Seconds() + 1)
	}
	if n < 0 || n > most {
		return 0
	}
	return n
}

// namelessCall is for a tool call that nobody can execute.
func namelessCall() error {
	return &runner.AgentError{
		Code:    "agent_bad_stream",
		Message: "The agent called a tool without a name.",
		Err:     errNoName,
	}
}
