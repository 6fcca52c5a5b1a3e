package terminal

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/threadcast/threadcast/cmd/threadcast/client"
)

// listed is a thread of a list (docs/protocol.md, section 8).
type listed struct {
	ID       string    `json:"id"`
	Title    string    `json:"title"`
	State    string    `json:"state"`
	AgentID  string    `json:"agentId"`
	Activity time.Time `json:"activity"`
}

// page is the most that is asked for at a time.
const page = 200

// Threads lists threads, latest activity first: at most limit of them, all if it is 0. For the errors see [ExitCode].
func Threads(ctx context.Context, c Config, limit int) error {
	nodes := c.nodes()
	defer nodes.Close()
	s := newScreen(c.Output, false)
	show := table{screen: s, now: time.Now(), full: c.Full}
	before, left := "", limit
	for {
		var list struct {
			Threads []json.RawMessage `json:"threads"`
			Next    string            `json:"next"`
		}
		n := page
		if limit > 0 {
			n = min(n, left)
		}
		path := "/api/threads?limit=" + strconv.Itoa(n)
		if before != "" {
			path += "&before=" + url.QueryEscape(before)
		}
		if err := nodes.Call(ctx, client.Request{Method: http.MethodGet, Path: path}, &list); err != nil {
			return c.explain(err)
		}
		if err := show.add(list.Threads, c.JSON); err != nil {
			return err
		}
		left -= len(list.Threads)
		before = list.Next
		if before == "" || limit > 0 && left <= 0 {
			break
		}
	}
	if !show.begun && !c.JSON {
		s.aside("There are no threads yet.")
	}
	return s.flush()
}

// table shows threads, a line each.
type table struct {
	*screen
	now   time.Time
	full  bool // titles are not shortened
	begun bool
	id    int // the width of the ids so far
}

// add shows threads as lines of a table, or as the JSON that they came as.
func (t *table) add(threads []json.RawMessage, asJSON bool) error {
	all := make([]listed, len(threads))
	for i, raw := range threads {
		if asJSON {
			lines{t.screen}.raw(raw)
			continue
		}
		if err := json.Unmarshal(raw, &all[i]); err != nil {
			return fmt.Errorf("read the list: %w", err)
		}
		all[i].ID = line(all[i].ID)
		t.id = max(t.id, min(widths.StringWidth(all[i].ID), longestID))
	}
	if asJSON || len(all) == 0 {
		return t.flush()
	}
	if !t.begun {
		t.begun = true
		t.note(t.paint(dim, t.row("STATE", "AGE", "THREAD", "TITLE")))
	}
	for _, l := range all {
		row := t.row(stateWord(l.State), age(t.now.Sub(l.Activity)), l.ID, "")
		title := line(l.Title)
		if !t.full {
			title = t.fit(title, widths.StringWidth(row))
		}
		word := pad(stateWord(l.State), stateWidth)
		t.note(t.paint(stateStyle(l.State), word) + strings.TrimPrefix(row, word) + title)
	}
	return t.flush()
}

const (
	stateWidth = 10
	ageWidth   = 5
	longestID  = 40 // of those that are aligned
)

func (t *table) row(state, age, id, title string) string {
	return pad(state, stateWidth) + pad(age, ageWidth) + pad(id, max(t.id, len("THREAD"))+2) + title
}

// stateWord is a state as people read it.
func stateWord(state string) string { return strings.ReplaceAll(line(state), "_", " ") }

func stateStyle(state string) style {
	switch state {
	case "running":
		return green
	case "waiting":
		return yellow
	case "failed", "lost", "timed_out", "shut_down":
		return red
	}
	return dim
}

// age is how long ago something was, in a few letters.
func age(d time.Duration) string {
	switch {
	case d < time.Second:
		return "now"
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d < 1000*24*time.Hour:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	}
	return fmt.Sprintf("%dy", d/(365*24*time.Hour))
}
