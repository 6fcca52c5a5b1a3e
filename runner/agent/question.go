package agent

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// question is what the demo makes of a run's input.
type question struct {
	text   string   // the last user message
	words  []string // its words in lower case
	turn   int      // how many answers the thread has had
	state  json.RawMessage
	resume []decision
	load   *load
}

// decision is somebody's answer to an interrupt (AG-UI 1.0, section 5.6).
type decision struct {
	Status  string          `json:"status"`
	Payload json.RawMessage `json:"payload"`
}

// demoInput is the part of RunAgentInput that the demo reads (AG-UI 1.0, section 6).
type demoInput struct {
	State    json.RawMessage `json:"state"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Resume         []decision      `json:"resume"`
	ForwardedProps json.RawMessage `json:"forwardedProps"`
}

// readQuestion reads an input. Its error is for people; it says what is wrong, not with whose text.
func readQuestion(input []byte) (question, error) {
	var in demoInput
	if err := json.Unmarshal(input, &in); err != nil {
		return question{}, errors.New("it is not a RunAgentInput")
	}
	q := question{state: in.State, resume: in.Resume}
	for _, m := range in.Messages {
		switch m.Role {
		case "user":
			q.text = plainText(m.Content)
		case "assistant":
			q.turn++
		}
	}
	q.words = strings.FieldsFunc(strings.ToLower(q.text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	var err error
	q.load, err = readLoad(in.ForwardedProps)
	return q, err
}

// plainText returns the text of a message's content, which is a string or a list of parts (AG-UI 1.0, section 5.3).
func plainText(content json.RawMessage) string {
	var s string
	if json.Unmarshal(content, &s) == nil {
		return s
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(content, &parts) != nil {
		return ""
	}
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// has tells whether one of the words was said.
func (q question) has(words ...string) bool {
	for _, said := range q.words {
		for _, word := range words {
			if said == word {
				return true
			}
		}
	}
	return false
}

// quote returns the question on one line, shortened, as a piece of Markdown that shows it literally.
func (q question) quote() string {
	const most = 160
	line := []rune(strings.Join(strings.Fields(q.text), " "))
	end := ""
	if len(line) > most {
		line, end = line[:most], "…"
	}
	var b strings.Builder
	for _, r := range string(line) {
		if strings.ContainsRune("\\`*_[]<>#|~&!$", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String() + end
}

// hush returns how long the demo was asked to be silent: the first number that was said, in seconds.
func (q question) hush() time.Duration {
	for _, word := range q.words {
		if n, err := strconv.Atoi(word); err == nil {
			return min(time.Duration(n)*time.Second, longestHush)
		}
	}
	return defaultHush
}

// approved tells whether every decision is a clear yes. A resolved interrupt without a payload is one.
func (q question) approved() bool {
	for _, d := range q.resume {
		if d.Status != "resolved" || !isYes(d.Payload) {
			return false
		}
	}
	return true
}

func isYes(payload json.RawMessage) bool {
	if payload == nil {
		return true
	}
	var yes bool
	if json.Unmarshal(payload, &yes) == nil {
		return yes
	}
	var form struct {
		Approved bool `json:"approved"`
	}
	if json.Unmarshal(payload, &form) == nil && form.Approved {
		return true
	}
	var word string
	if json.Unmarshal(payload, &word) != nil {
		return false
	}
	switch strings.ToLower(strings.TrimSpace(word)) {
	case "yes", "ok", "approve", "approved", "true":
		return true
	}
	return false
}

// places are the words that come before a city.
var places = map[string]bool{"in": true, "for": true, "at": true, "of": true}

// city returns the city that the question names: what follows "in" or "for", else what is written with a
// capital letter behind the first word, else Lisbon.
func (q question) city() string {
	words := strings.FieldsFunc(q.text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' && r != '\''
	})
	for i := len(words) - 2; i >= 0; i-- {
		if places[strings.ToLower(words[i])] && !isCommon(words[i+1]) {
			return name(words[i+1:])
		}
	}
	for i := 1; i < len(words); i++ {
		if unicode.IsUpper([]rune(words[i])[0]) && !isCommon(words[i]) {
			return name(words[i:])
		}
	}
	if len(words) == 2 && sceneFor(strings.ToLower(words[0])) != nil && !isCommon(words[1]) {
		return name(words[1:])
	}
	return "Lisbon"
}

// isCommon tells whether a word is certainly no city.
func isCommon(word string) bool {
	switch word = strings.ToLower(word); word {
	case "a", "an", "the", "my", "me", "i", "it", "this", "that", "now", "today", "tomorrow", "please", "call", "use", "calls":
		return true
	}
	return sceneFor(word) != nil
}

// name joins the first of the words with those after it that begin with a capital letter, three at most.
func name(words []string) string {
	n := 1
	for n < len(words) && n < 3 && unicode.IsUpper([]rune(words[n])[0]) && !isCommon(words[n]) {
		n++
	}
	first := []rune(words[0])
	first[0] = unicode.ToUpper(first[0])
	return strings.Join(append([]string{string(first)}, words[1:n]...), " ")
}
