package runner_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner"
	"github.com/threadcast/threadcast/runner/agenttest"
)

const asks = `{"type":"RUN_FINISHED","threadId":"{thread}","runId":"{run}","outcome":{"type":"interrupt",` +
	`"interrupts":[ {"id":"i1","reason":"sure?"} ]}}`

const secret = "sk-secret-4711"

func TestAgentEnds(t *testing.T) {
	cancelled := strings.TrimSuffix(finished, "}") + `,"outcome":{"type":"cancelled"}}`
	for _, c := range []struct {
		name   string
		steps  []agenttest.Step
		end    thread.End
		events string
	}{
		{"with success", answer(1), thread.End{Outcome: thread.OutcomeFinished},
			"RUN_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END RUN_FINISHED"},
		{"with an interrupt", script(started, asks), thread.End{Outcome: thread.OutcomeWaiting}, "RUN_STARTED RUN_FINISHED"},
		{"cancelled by itself", script(started, cancelled), thread.End{Outcome: thread.OutcomeStopped, By: "agent"},
			"RUN_STARTED RUN_FINISHED"},
		{"with RUN_ERROR", script(started, open, `{"type":"RUN_ERROR","message":"out of \"tokens\"","code":"quota"}`),
			thread.End{Outcome: thread.OutcomeFailed, Code: "quota", Message: `out of "tokens"`},
			"RUN_STARTED TEXT_MESSAGE_START RUN_ERROR"},
		{"with RUN_ERROR at once", script(`{"type":"RUN_ERROR","message":"no"}`),
			thread.End{Outcome: thread.OutcomeFailed, Message: "no"}, "RUN_STARTED RUN_ERROR"},
		{"without an end", script(started, open),
			thread.End{Outcome: thread.OutcomeFailed, Code: "stream_truncated", Message: "The agent's answer broke off before its end."},
			"RUN_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_END RUN_ERROR"},
		{"without a word", nil,
			thread.End{Outcome: thread.OutcomeFailed, Code: "stream_truncated", Message: "The agent's answer broke off before its end."},
			"RUN_STARTED RUN_ERROR"},
		{"with an error for viewers", append(script(started, open), agenttest.Fail(fmt.Errorf("call: %w",
			&runner.AgentError{Code: "agent_unreachable", Message: "The agent cannot be reached.", Err: errors.New(secret)}))),
			thread.End{Outcome: thread.OutcomeFailed, Code: "agent_unreachable", Message: "The agent cannot be reached."},
			"RUN_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_END RUN_ERROR"},
		{"with an error that is nobody's business", append(script(started, open), agenttest.Fail(errors.New(secret))),
			thread.End{Outcome: thread.OutcomeFailed, Code: "agent_failed", Message: "The agent failed."},
			"RUN_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_END RUN_ERROR"},
		{"with a panic", append(script(started, open), agenttest.Panic(secret)),
			thread.End{Outcome: thread.OutcomeFailed, Code: "agent_panicked", Message: "The agent broke down."},
			"RUN_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_END RUN_ERROR"},
		{"with a text still open", script(started, open, finished),
			thread.End{Outcome: thread.OutcomeFailed, Code: "bad_event", Message: `The agent sent an event that is not valid ` +
				`AG-UI: malformed event "RUN_FINISHED": type: text messages are still open: "m" (AG-UI 1.0, V20)`},
			"RUN_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_END RUN_ERROR"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(b *bench) {
				r := b.node(agenttest.New(c.steps, answer(1)))
				got := b.perform(r, "t", "r1")
				same(b, "end", &c.end, got.end)
				same(b, "events", c.events, got.types())
				for _, event := range got.events {
					if strings.Contains(event, secret) || strings.Contains(event, "goroutine") {
						b.Errorf("viewers read %s", event)
					}
				}
				same(b, "next run", "finished", b.perform(r, "t", "r2").outcome())
				same(b, "abandoned", 0, r.Abandoned())
			})
		})
	}
	t.Run("by ending its goroutine", func(t *testing.T) {
		bubble(t, func(b *bench) {
			r := b.node(agenttest.Func(func(context.Context, runner.Input, func([]byte) error) error {
				runtime.Goexit()
				return nil
			}))
			same(b, "outcome", "failed stream_truncated", b.perform(r, "t", "r1").outcome())
		})
	})
	t.Run("with what only the log may hold", func(t *testing.T) {
		bubble(t, func(b *bench) {
			b.perform(b.node(agenttest.New([]agenttest.Step{agenttest.Panic(secret)})), "t", "r1")
			same(b, "panic is logged", true, b.said.contains(secret) && b.said.contains("goroutine"))
		})
	})
}

func TestAgentWaitsForAnAnswer(t *testing.T) {
	bubble(t, func(b *bench) {
		failing := []agenttest.Step{agenttest.Fail(errors.New("no"))}
		r := b.node(agenttest.New(script(started, asks), failing, answer(1)))
		const want = `[ {"id":"i1","reason":"sure?"} ]`
		b.perform(r, "t", "r1")
		run, _ := b.past.run("t", "r1")
		same(b, "pending of the run", want, string(run.Pending))
		for _, c := range []struct {
			run  thread.RunID
			want string
		}{{"", want}, {"r2", want}, {"r3", ""}} {
			if c.run != "" {
				b.perform(r, "t", c.run)
			}
			st, err := r.Status(b.Context(), "t")
			same(b, "error", nil, err)
			same(b, "pending after "+string(c.run), c.want, string(st.Pending))
		}
	})
}

func TestAgentEmitsRubbish(t *testing.T) {
	for _, c := range []struct{ name, event string }{
		{"no JSON", `hello`},
		{"half an object", `{"type":"CUSTOM"`},
		{"no object", `[]`},
		{"no type", `{"name":"x"}`},
		{"nothing", ``},
		{"a known type without what it needs", `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m"}`},
		{"content of nothing", `{"type":"TEXT_MESSAGE_CONTENT","messageId":"x","delta":"a"}`},
		{"the end of another run", `{"type":"RUN_FINISHED","threadId":"t","runId":"r0"}`},
		{"a second start", `{"type":"RUN_STARTED","threadId":"t","runId":"r1"}`},
	} {
		for _, before := range [][]string{{started, open}, {}} {
			if len(before) == 0 && c.name == "a second start" {
				continue // it is the first one
			}
			t.Run(fmt.Sprint(c.name, " after ", len(before), " events"), func(t *testing.T) {
				bubble(t, func(b *bench) {
					refused := make(chan error, 1)
					r := b.node(agenttest.Func(func(_ context.Context, in runner.Input, emit func([]byte) error) error {
						for _, event := range before {
							event = strings.NewReplacer("{thread}", "t", "{run}", "r1").Replace(event)
							if err := emit([]byte(event)); err != nil {
								return err
							}
						}
						refused <- emit([]byte(c.event))
						return errors.Join(emit([]byte(custom)), emit([]byte(finished)))
					}))
					got := b.perform(r, "t", "r1")
					if <-refused == nil {
						b.Error("emit took it")
					}
					same(b, "outcome", "failed bad_event", got.outcome())
					same(b, "message", true, strings.HasPrefix(got.end.Message, "The agent sent an event that is not valid AG-UI: "))
					same(b, "events", 2+len(before), len(got.events))
				})
			})
		}
	}
	t.Run("a start that names another run", func(t *testing.T) {
		bubble(t, func(b *bench) {
			r := b.node(agenttest.New(script(`{"type":"RUN_STARTED","threadId":"t","runId":"r0"}`)))
			same(b, "outcome", "failed bad_event", b.perform(r, "t", "r1").outcome())
		})
	})
	t.Run("bytes that are not UTF-8 are read as a browser reads them", func(t *testing.T) {
		bubble(t, func(b *bench) {
			r := b.node(agenttest.New(script(started, "{\"type\":\"CUSTOM\",\"name\":\"a\xffb\",\"value\":1}", finished)))
			got := b.perform(r, "t", "r1")
			same(b, "event", "{\"type\":\"CUSTOM\",\"name\":\"a\ufffdb\",\"value\":1}", got.events[1])
		})
	})
}

func TestAgentEmitsTooMuch(t *testing.T) {
	t.Run("an event that is too large", func(t *testing.T) {
		bubble(t, func(b *bench) {
			cfg := b.config()
			cfg.MaxEventBytes = 1000
			r := b.nodeWith(agenttest.New(append(script(started, open), agenttest.BigResult("c", "m", 1000))), cfg)
			got := b.perform(r, "t", "r1")
			same(b, "outcome", "failed event_too_large", got.outcome())
			same(b, "events", "RUN_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_END RUN_ERROR", got.types())
		})
	})
	t.Run("more than a run may hold", func(t *testing.T) {
		bubble(t, func(b *bench) {
			cfg := b.config()
			cfg.MaxRunBytes = 2000
			agent := &flood{}
			got := b.perform(b.nodeWith(agent, cfg), "t", "r1")
			same(b, "outcome", "failed run_too_large", got.outcome())
			same(b, "events", "RUN_STARTED CUSTOM RUN_ERROR", got.types())
			same(b, "refused", true, agent.refused.Load())
		})
	})
	t.Run("events after its end are ignored", func(t *testing.T) {
		bubble(t, func(b *bench) {
			var late []error
			r := b.node(agenttest.Func(func(_ context.Context, in runner.Input, emit func([]byte) error) error {
				end := strings.NewReplacer("{thread}", "t", "{run}", string(in.RunID)).Replace(finished)
				if err := emit([]byte(end)); err != nil {
					return err
				}
				for _, event := range []string{custom, end, `{"type":"RUN_ERROR","message":"late"}`, "rubbish"} {
					late = append(late, emit([]byte(event)))
				}
				return errors.New("late failure")
			}))
			got := b.perform(r, "t", "r1")
			same(b, "events", "RUN_STARTED RUN_FINISHED", got.types())
			same(b, "outcome", "finished", got.outcome())
			for i, err := range late {
				if err == nil {
					b.Errorf("late event %d was taken", i)
				}
			}
		})
	})
}

func TestAgentInput(t *testing.T) {
	t.Run("a start is written for an agent that sends none", func(t *testing.T) {
		bubble(t, func(b *bench) {
			r := b.node(agenttest.New(script(open, shut, finished)))
			got := b.perform(r, "t", "r1")
			same(b, "start", `{"type":"RUN_STARTED","threadId":"t","runId":"r1","protocolVersion":"1.0",`+
				`"input":{"threadId":"t","runId":"r1","messages":[{"id":"u-r1","role":"user","content":"hi"}]}}`, got.events[0])
		})
	})
	t.Run("a start without input is completed and otherwise left alone", func(t *testing.T) {
		bubble(t, func(b *bench) {
			r := b.node(agenttest.New(script(`{ "threadId":"t", "runId":"r1","x":1.50,"type":"RUN_STARTED" }`, finished)))
			got := b.perform(r, "t", "r1")
			same(b, "start", `{ "threadId":"t", "runId":"r1","x":1.50,"type":"RUN_STARTED" `+
				`,"input":{"threadId":"t","runId":"r1","messages":[{"id":"u-r1","role":"user","content":"hi"}]}}`, got.events[0])
		})
	})
	t.Run("a start with input is as the agent sent it", func(t *testing.T) {
		bubble(t, func(b *bench) {
			const own = `{"type":"RUN_STARTED","threadId":"t","runId":"r1","input":{"threadId":"t","runId":"r1","messages":[]}}`
			same(b, "start", own, b.perform(b.node(agenttest.New(script(own, finished))), "t", "r1").events[0])
		})
	})
	t.Run("the record has the new messages, the agent gets all of them", func(t *testing.T) {
		// Case c14 of the field: clients whose lists differ from the thread.
		bubble(t, func(b *bench) {
			said := `{"type":"TEXT_MESSAGE_START","messageId":"a-{run}","role":"assistant"}`
			ended := `{"type":"TEXT_MESSAGE_END","messageId":"a-{run}"}`
			agent := agenttest.New(script(said, ended, finished))
			r := b.node(agent)
			for _, c := range []struct {
				run       thread.RunID
				all, kept []string
			}{
				{"r1", []string{"u1"}, []string{"u1"}},
				{"r2", []string{"u2"}, []string{"u2"}},
				{"r3", []string{"u1-new", "u2", "u3"}, []string{"u1-new", "u3"}},
				{"r4", []string{"u1", "a-r1", "u2", "a-r2", "u3", "u4"}, []string{"u4"}},
				{"r5", []string{"u1", "a-r1"}, nil},
			} {
				if _, err := r.Run(b.Context(), requestWith("t", c.run, messages(c.all))); err != nil {
					b.Fatal(err)
				}
				synctest.Wait()
				inputs := agent.Inputs()
				same(b, "agent's input of "+string(c.run), fmt.Sprintf(`{"threadId":"t","runId":%q,%s}`, c.run, messages(c.all)),
					string(inputs[len(inputs)-1].JSON))
				want := fmt.Sprintf(`{"threadId":"t","runId":%q,%s}`, c.run, messages(c.kept))
				got := b.last("t")
				same(b, "recorded input of "+string(c.run), true, strings.HasSuffix(got.events[0], `"input":`+want+"}"))
				run, _ := b.past.run("t", c.run)
				same(b, "row's input of "+string(c.run), want, string(run.Input))
			}
		})
	})
}

// messages makes the member of an input that holds user messages of these ids.
func messages(ids []string) string {
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = fmt.Sprintf(`{"id":%q,"role":"user","content":"x"}`, id)
	}
	return `"messages":[` + strings.Join(list, ",") + `]`
}
