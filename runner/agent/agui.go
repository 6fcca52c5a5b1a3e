package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/threadcast/threadcast/runner"
)

// AGUIOptions are the particulars of an [AGUI]. The zero value is fit for use.
type AGUIOptions struct {
	// Header is sent with each request, for instance to authenticate. Content-Type, Accept and Accept-Encoding
	// are fixed.
	Header http.Header
	// DialTimeout limits how long a connection, and then its TLS handshake, may take; 10 seconds if it is zero.
	DialTimeout time.Duration
	// HeaderTimeout limits how long the agent may think before it answers at all; 5 minutes if it is zero. The
	// answer itself may take any time: the runner limits that.
	HeaderTimeout time.Duration
	// MaxEvent is the greatest size of an event in bytes; 10 MiB if it is zero.
	MaxEvent int
}

func (o AGUIOptions) withDefaults() AGUIOptions {
	header := http.Header{}
	for name, values := range o.Header {
		for _, value := range values {
			header.Add(name, value) // whatever the case in which the name was configured
		}
	}
	o.Header = header
	o.DialTimeout = cmp.Or(o.DialTimeout, 10*time.Second)
	o.HeaderTimeout = cmp.Or(o.HeaderTimeout, 5*time.Minute)
	o.MaxEvent = cmp.Or(o.MaxEvent, 10<<20)
	return o
}

func (o AGUIOptions) validate() error {
	switch {
	case o.DialTimeout < 0:
		return fmt.Errorf("dial timeout %v is negative", o.DialTimeout)
	case o.HeaderTimeout < 0:
		return fmt.Errorf("header timeout %v is negative", o.HeaderTimeout)
	case o.MaxEvent < 0:
		return fmt.Errorf("event limit %d is negative", o.MaxEvent)
	}
	return checkHeader(o.Header)
}

// AGUI is an agent that speaks AG-UI over HTTP: the run's input is posted to it, and it answers with
// server-sent events (AG-UI 1.0, sections 15.1 and 15.2). It is safe for concurrent use.
//
// When a run's context is done the connection is closed at once, so that the agent can notice. How an exchange goes
// wrong is told by the code of a [runner.AgentError]:
//
//   - agent_unreachable: no connection, or no answer in time
//   - agent_status: an answer other than 2xx with a body
//   - agent_content_type: an answer that cannot be an event stream
//   - agent_bad_stream: a frame that is no event, or larger than allowed
//   - agent_truncated: the stream broke off
//
// Their messages name neither the address nor anything that the agent said; the wrapped errors do.
type AGUI struct {
	url      string
	header   http.Header
	maxEvent int
	client   *http.Client
}

// NewAGUI returns the agent at an http or https URL. It connects to nothing yet. An error names what is wrong with the
// URL or the options.
func NewAGUI(address string, opts AGUIOptions) (*AGUI, error) {
	if err := checkAddress(address); err != nil {
		return nil, err
	}
	if err := opts.validate(); err != nil {
		return nil, err
	}
	opts = opts.withDefaults()
	return &AGUI{
		url:      address,
		header:   opts.Header,
		maxEvent: opts.MaxEvent,
		client:   newClient(opts.DialTimeout, opts.HeaderTimeout),
	}, nil
}

func checkAddress(address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return fmt.Errorf("agent address: %w", withoutURL(err))
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" {
		return errors.New("agent address: it must be an http or https URL with a host")
	}
	return nil
}

// Close closes the connections that no run uses. Runs go on, and the agent can still be used.
func (a *AGUI) Close() { a.client.CloseIdleConnections() }

// Run posts the input and emits the events of the answer, each as soon as it is complete. It returns nil when the
// stream ends between two events, whether or not the run's terminal event was among them; the error of
// emit; the cause of ctx soon after ctx is done; otherwise a [runner.AgentError].
func (a *AGUI) Run(ctx context.Context, in runner.Input, emit func(event []byte) error) error {
	resp, err := a.post(ctx, in.JSON)
	if err != nil {
		return causeOr(ctx, unreachable(err))
	}
	defer func() { _ = resp.Body.Close() }() // before the end of the body this closes the connection
	if err := checkResponse(resp); err != nil {
		return causeOr(ctx, err)
	}
	stream := newFrames(resp.Body, a.maxEvent)
	for n := 0; ; n++ {
		frame, err := stream.next()
		if errors.Is(err, io.EOF) && n == 0 && isJSON(resp) {
			return causeOr(ctx, notAStream(errors.New("an answer in JSON, without an event")))
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, errUnterminated) {
			return causeOr(ctx, a.broken(err))
		}
		event, bad := readEvent(frame)
		if bad != nil {
			return notAnEvent(frame, cmp.Or(err, bad))
		}
		if err := emit(event); err != nil {
			return err
		}
	}
}

// causeOr returns why ctx is done, or err if it is not: what goes wrong in a run that was cancelled went wrong
// because of that.
func causeOr(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}
