package agent

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/threadcast/threadcast/runner"
)

//go:embed texts/*.md
var texts embed.FS

// text returns one of the demo's texts.
func text(name string) string {
	data, err := texts.ReadFile("texts/" + name + ".md")
	if err != nil {
		panic(err) // the files are part of the program
	}
	return string(data)
}

// recite answers with a text as it is.
func recite(name string) scene {
	words := strings.TrimSuffix(text(name), "\n")
	return func(ctx context.Context, v *voice, _ question) error {
		_, err := v.say(ctx, words)
		return err
	}
}

// welcome is the first answer in a thread.
func welcome(ctx context.Context, v *voice, _ question) error {
	_, err := v.say(ctx, text("welcome")+strings.TrimSuffix(text("menu"), "\n"))
	return err
}

// answer is for everything that names no scene: it takes up what was said and adds something worth knowing.
func answer(ctx context.Context, v *voice, q question) error {
	facts := strings.Split(strings.TrimSpace(text("facts")), "\n\n---\n\n")
	fact := facts[(hash(v.thread)+uint64(q.turn))%uint64(len(facts))] // not the one of the last answer
	closing := pick(v, closings)
	_, err := v.say(ctx, opening(v, q)+"\n\n"+fact+"\n\n"+closing)
	return err
}

func pick(v *voice, from []string) string { return from[v.chance.IntN(len(from))] }

// opening takes up what was said.
func opening(v *voice, q question) string {
	switch {
	case len(q.words) == 0:
		return "There was nothing to read in that, but I am glad to say something anyway."
	case len(q.words) <= 4 && q.has("hello", "hi", "hey"):
		return "Hello again! It is still the same thread, and I still know what was said in it."
	case len(q.words) <= 6 && q.has("thanks", "thank"):
		return "You are welcome! Here is one more thing, since you are so kind."
	case len(q.words) <= 4 && q.has("bye", "goodbye"):
		return "Goodbye! The thread stays here, you can come back to it at any time."
	case strings.HasSuffix(strings.TrimSpace(q.text), "?"):
		return fmt.Sprintf(pick(v, questionOpenings), q.quote())
	}
	return fmt.Sprintf(pick(v, openings), q.quote())
}

var questionOpenings = []string{
	"“%s” is a question for an agent with a model behind it, which I am not. What I can tell you is this:",
	"You ask: “%s” I wish I knew. But since you are watching a run right now, here is something about that:",
	"“%s” Honestly, I cannot say; I only know about the thing that brings you this text:",
}

var openings = []string{
	"“%s”: that is now part of this thread, and so is this answer.",
	"You wrote “%s”. I am only a demo and cannot add much to it, except perhaps this:",
	"“%s”: noted. While you read this, something to think about:",
	"Thank you for “%s”. Let me give you a piece of knowledge in return:",
}

var closings = []string{
	"Say **help** to see what else I can show you.",
	"If you like to see more than words, say **tool** or **state**.",
	"Say **long**, then reload the page in the middle of it.",
	"To see me stop and wait for you, say **approve**.",
	"Curious what happens when things go wrong? Say **fail**.",
}

// reason thinks aloud before it answers.
func reason(ctx context.Context, v *voice, q question) error {
	span, thought := v.id("reasoning"), v.id("thought")
	thinking := "The user wrote “" + q.quote() + "”. They want to see reasoning, so I should think where they can read it. " +
		"What matters here? A thought is sent as events of its own, apart from the answer. " +
		"A client may fold it away, and it is kept with the run like everything else. " +
		"That is short enough to explain in two sentences. I am ready to answer."
	for _, e := range []event{
		{Type: "REASONING_START", MessageID: span},
		{Type: "REASONING_MESSAGE_START", MessageID: thought, Role: "reasoning"},
	} {
		if err := v.send(ctx, e); err != nil {
			return err
		}
	}
	if err := v.stream(ctx, event{Type: "REASONING_MESSAGE_CONTENT", MessageID: thought}, thinking); err != nil {
		return err
	}
	for _, e := range []event{
		{Type: "REASONING_MESSAGE_END", MessageID: thought},
		{Type: "REASONING_END", MessageID: span},
	} {
		if err := v.send(ctx, e); err != nil {
			return err
		}
	}
	_, err := v.say(ctx, "You have just seen me think, or rather, the events in which an agent shows its reasoning. "+
		"They come before the answer, and your client decides whether to show them or fold them away. "+
		"Reload the page, and the thoughts are still there, in front of this text.")
	return err
}

// fallSilent sends nothing for as long as it was asked to.
func fallSilent(ctx context.Context, v *voice, q question) error {
	hush := q.hush()
	if _, err := v.say(ctx, fmt.Sprintf("I will now be silent for %.0f seconds.", hush.Seconds())); err != nil {
		return err
	}
	if err := wait(ctx, hush); err != nil {
		return err
	}
	_, err := v.say(ctx, fmt.Sprintf("Here I am again, after %.0f seconds without a single event. "+
		"The run was alive all the time: whether it is does not depend on what I say. "+
		"If you left in the meantime, you have missed nothing.", hush.Seconds()))
	return err
}

// breakDown fails in the middle of a sentence, and leaves its message open as an agent that fails does.
func breakDown(ctx context.Context, v *voice, _ question) error {
	id, err := v.open(ctx)
	if err != nil {
		return err
	}
	if err := v.write(ctx, id, "Everything is going well so far. I have looked into the matter, and the most important thing about it is "); err != nil {
		return err
	}
	return &runner.AgentError{Code: "demo_failure", Message: "The demo broke down, as it was asked to."}
}

// askApproval ends the run with an interrupt.
func askApproval(ctx context.Context, v *voice, _ question) error {
	_, err := v.say(ctx, "I have put a summary together and would now send it to the whole team. "+
		"That cannot be undone, so I would rather ask you first. "+
		"This run ends here and waits; **the answer may come from any tab**, today or next week.")
	if err != nil {
		return err
	}
	v.outcome = &outcome{Type: "interrupt", Interrupts: []interrupt{{
		ID:       v.id("approval"),
		Reason:   "confirmation",
		Message:  "Send the summary to the whole team?",
		Response: json.RawMessage(`{"type":"object","properties":{"approved":{"type":"boolean"}},"required":["approved"]}`),
	}}}
	return nil
}

// hearDecision is the run that follows an interrupt.
func hearDecision(ctx context.Context, v *voice, q question) error {
	words := "**Declined.** Nothing is sent, and I shall not ask again on my own. " +
		"Your decision is part of the thread now, so everybody who comes later sees what was decided."
	if q.approved() {
		words = "**Approved**, thank you. This is where a real agent sends the summary; I only say that I would. " +
			"Your decision started a new run that carries on from the one that asked, and both are part of the thread."
	}
	_, err := v.say(ctx, words)
	return err
}
