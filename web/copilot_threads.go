package web

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"github.com/threadcast/threadcast/hub"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agui"
	"github.com/threadcast/threadcast/web/copilotkit"
)

// threads adds the routes of the thread list.
func (k copilot) threads(add func(methods []string, path string, handle echo.HandlerFunc)) {
	add(reading, "/threads", brief(k.listThreads))
	add([]string{http.MethodPost}, "/threads/subscribe", k.subscribeThreads)
	add([]string{http.MethodPatch}, "/threads/:id", brief(k.editThread(nil)))
	add([]string{http.MethodDelete}, "/threads/:id", api{k.Server}.deleteThread)
	add([]string{http.MethodPost}, "/threads/:id/archive", brief(k.editThread(new(true))))
	add([]string{http.MethodPost}, "/threads/:id/unarchive", brief(k.editThread(new(false))))
	add(reading, "/threads/:id/messages", k.threadMessages)
	add(reading, "/threads/:id/events", k.threadEvents)
	add(reading, "/threads/:id/state", k.threadState)
}

// listThreads answers with a page of the caller's threads. They ask for a new topic if nobody who calls from there follows
// the list: a client subscribes again only for another.
func (k copilot) listThreads(c echo.Context) error {
	n := normalThreads
	if text := c.QueryParam("limit"); text != "" {
		asked, err := strconv.Atoi(text)
		if err != nil || asked < 1 {
			return badInput("limit must be a number of at least 1")
		}
		n = min(asked, mostThreads)
	}
	who := callerOf(c)
	page := thread.Page{
		Owner: who.User, Agent: c.QueryParam("agentId"), Archived: c.QueryParam("includeArchived") == "true",
		Before: c.QueryParam("cursor"), Limit: n,
	}
	threads, next, err := k.Directory.Threads(c.Request().Context(), page)
	if err != nil {
		return err
	}
	code := ""
	if !k.sse {
		code = k.following.code(who)
	}
	return c.JSON(http.StatusOK, copilotkit.NewThreads(threads, code, next))
}

// subscribeThreads answers with a ticket for the changes of the caller's threads.
func (k copilot) subscribeThreads(c echo.Context) error {
	if k.sse {
		return &absence{"changes of threads come over the socket, which this address does not use"}
	}
	token := k.tickets.issue(grant{User: callerOf(c).User, Kind: ticketList})
	return c.JSON(http.StatusOK, map[string]string{"joinToken": token})
}

// editThread names a thread, or archives it or takes that back, as the body says, or as archived does.
func (k copilot) editThread(archived *bool) echo.HandlerFunc {
	return func(c echo.Context) error {
		id, err := threadID(c)
		if err != nil {
			return err
		}
		edit := thread.Edit{Archived: archived}
		if archived == nil {
			payload, err := wholeBody(c)
			if err != nil {
				return err
			}
			f, err := parseFields(payload)
			if err != nil {
				return err
			}
			if edit, err = f.edit(); err != nil {
				return err
			}
		}
		t, err := k.edit(c.Request().Context(), callerOf(c), id, edit)
		if err != nil {
			return err
		}
		return c.JSON(http.StatusOK, map[string]copilotkit.Thread{"thread": copilotkit.NewThread(t)})
	}
}

// threadMessages answers with a thread's messages in the form of the inspector.
func (k copilot) threadMessages(c echo.Context) error {
	t, err := k.known(c)
	if err != nil {
		return err
	}
	return k.view(c, t.ID, agui.Reducer{NoState: true}, func(r *agui.Reducer, _ thread.Cursor) [][]byte {
		return [][]byte{[]byte(`{"messages":`), copilotkit.InspectedMessages(r.Messages()), []byte("}")}
	})
}

// threadState answers with a thread's state.
func (k copilot) threadState(c echo.Context) error {
	t, err := k.known(c)
	if err != nil {
		return err
	}
	return k.view(c, t.ID, agui.Reducer{NoMessages: true}, func(r *agui.Reducer, _ thread.Cursor) [][]byte {
		return [][]byte{[]byte(`{"state":`), r.State(), []byte("}")}
	})
}

// mostEvents bounds the events that threadEvents answers with, in bytes.
const mostEvents = 16 << 20

// errEnough ends a walk that has got as much as it may.
var errEnough = errors.New("there is more than is wanted")

// threadEvents answers with a thread's events as history keeps them, from its beginning on.
func (k copilot) threadEvents(c echo.Context) error {
	t, err := k.known(c)
	if err != nil {
		return err
	}
	done, err := k.views.take(c.Request().Context())
	if err != nil {
		return err
	}
	defer done()
	var events []byte
	for range maxTries {
		events = []byte(`{"events":[`)
		err = k.Hub.Walk(c.Request().Context(), t.ID, hub.Options{Replay: hub.Stored}, func(b hub.Batch) error {
			if b.Kind == hub.Reset {
				return errReset
			}
			for _, event := range b.Events {
				events = append(append(events, event...), ',')
			}
			if len(events) > mostEvents {
				return errEnough
			}
			return nil
		})
		if !errors.Is(err, errReset) {
			break
		}
	}
	end := "]}"
	if errors.Is(err, errEnough) {
		err, end = nil, `],"truncated":true}`
	}
	if err != nil {
		return err
	}
	return answer(c, [][]byte{bytes.TrimSuffix(events, []byte(",")), []byte(end)})
}
