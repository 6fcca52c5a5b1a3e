package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner"
	"github.com/threadcast/threadcast/web"
)

// parrot is an agent: it says again, word by word, what it was told last.
type parrot struct{}

// Run emits the events of one run. RUN_STARTED is added by threadcast where an agent does not send it.
func (parrot) Run(ctx context.Context, in runner.Input, emit func(event []byte) error) error {
	var input struct{ Messages []struct{ Content string } }
	if err := json.Unmarshal(in.JSON, &input); err != nil || len(input.Messages) == 0 {
		return &runner.AgentError{Code: "nothing_said", Message: "There is nothing to say again.", Err: err}
	}
	id := "parrot-" + string(in.RunID)
	events := []map[string]any{{"type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant"}}
	for _, word := range strings.Fields(input.Messages[len(input.Messages)-1].Content) {
		events = append(events, map[string]any{"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": word + " "})
	}
	events = append(events, map[string]any{"type": "TEXT_MESSAGE_END", "messageId": id},
		map[string]any{"type": "RUN_FINISHED", "threadId": in.ThreadID, "runId": in.RunID})
	for _, event := range events {
		text, err := json.Marshal(event)
		if err != nil {
			return err
		}
		if err := emit(text); err != nil {
			return err // the run has ended, perhaps since somebody stopped it
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// users stands for whatever knows your users: sessions, tokens of your identity provider, a database.
var users = map[string]thread.User{"ann-token": "ann", "bob-token": "bob"}

// identify tells who calls. Over sockets it is asked once, in the handshake; phoenix.js and the query bring the token there.
func identify(r *http.Request) (thread.User, error) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if user, ok := users[token]; ok {
		return user, nil
	}
	return "", fmt.Errorf("%w: the header Authorization has to bring a token", web.ErrUnidentified)
}
