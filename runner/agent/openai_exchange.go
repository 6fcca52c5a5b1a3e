package agent

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

const (
	// lastWords is how long a server may take to end its stream once the model has said why it stopped. All that may
	// be missing then is the count of the tokens.
	lastWords = 5 * time.Second

	complaintSize = 64 << 10 // bytes of a refusal that are looked at
)

// ask sends a request until it is answered with a stream, or it is of no use to go on. Nothing has been said by then, so
// that a repetition repeats nothing. giveUp ends the context of the request.
func (o *OpenAI) ask(ctx context.Context, q chat, giveUp context.CancelCauseFunc) (*http.Response, error) {
	var resp *http.Response
	attempt := func(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
		r, err := next(req)
		switch {
		case err != nil && isTimeout(err):
			giveUp(err) // who took so long is not asked again
		case err == nil && r.StatusCode >= http.StatusMultipleChoices:
			keepBeginning(r) // the library would read a refusal to its end, if it has one
		}
		return r, err
	}
	stream := o.chat.NewStreaming(ctx, q.params, option.WithMiddleware(attempt), option.WithResponseInto(&resp))
	// The library gives no stream for a refusal, whose response is there nevertheless.
	if err := stream.Err(); err != nil && (resp == nil || resp.StatusCode < http.StatusBadRequest) {
		return nil, unreachable(cmp.Or(context.Cause(ctx), err))
	}
	if err := o.checkAnswer(resp); err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// keepBeginning puts the beginning of a refusal in the place of its body.
func keepBeginning(resp *http.Response) {
	text := beginning(resp.Body, complaintSize)
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(text))
}

// checkAnswer tells whether a response can be a stream of chunks.
func (o *OpenAI) checkAnswer(resp *http.Response) error {
	status := resp.StatusCode
	if status < 200 || status > 299 || status == http.StatusNoContent {
		text, _ := io.ReadAll(resp.Body) // which is in memory, or empty
		return o.refused(resp, text)
	}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); strings.HasSuffix(kind, "json") {
		text := beginning(resp.Body, complaintSize)
		if readComplaint(text).found {
			return o.failed(text)
		}
		return notAStream(fmt.Errorf("content type %q", kind))
	}
	return checkResponse(resp)
}

// read takes the chunks of an answer until its end.
func (o *OpenAI) read(ctx context.Context, body io.ReadCloser, r *reply) error {
	stream := newFrames(body, o.opts.MaxEvent)
	var impatience *time.Timer
	for {
		frame, err := stream.next()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		over, err := o.readFrame(frame, err, r)
		if over || err != nil {
			return err
		}
		if r.reason != "" && impatience == nil {
			impatience = time.AfterFunc(lastWords, func() { _ = body.Close() })
			defer impatience.Stop()
		}
	}
}

// readFrame takes a frame, or how the stream ended. It tells whether the answer is over. What is lost of a stream after
// the model has said why it stopped is no part of the answer.
func (o *OpenAI) readFrame(frame []byte, err error, r *reply) (over bool, _ error) {
	cut := errors.Is(err, errUnterminated)
	switch {
	case errors.Is(err, errFrameSize):
		return false, tooLarge(err, o.opts.MaxEvent)
	case err != nil && !cut && r.reason != "":
		return true, nil
	case err != nil && !cut:
		return false, truncated(err)
	}
	text := bytes.Trim(bytes.ToValidUTF8(frame, []byte("\uFFFD")), jsonSpace)
	switch {
	case len(text) == 0:
		return false, nil
	case bytes.HasPrefix(text, []byte("[DONE]")):
		return true, nil
	case cut && !json.Valid(text) && r.reason != "":
		return true, nil
	case !json.Valid(text):
		return false, notAnEvent(o.quotable(frame), cmp.Or(err, errNotJSON))
	case text[0] != '{':
		return false, notAnEvent(o.quotable(frame), errNotObject)
	}
	var chunk openai.ChatCompletionChunk
	if err := json.Unmarshal(text, &chunk); err != nil {
		return false, notAnEvent(o.quotable(frame), err)
	}
	if hasComplaint(chunk) {
		return false, o.failed(text)
	}
	return false, r.add(chunk)
}

func hasComplaint(chunk openai.ChatCompletionChunk) bool {
	raw := chunk.JSON.ExtraFields["error"].Raw()
	return raw != "" && raw != "null" || chunk.Object == "error"
}
