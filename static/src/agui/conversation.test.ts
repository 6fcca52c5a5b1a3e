import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Conversation } from "./conversation";
import { plainText, type AguiEvent } from "./events";

const started = (runId: string, input?: unknown): AguiEvent =>
  input === undefined ? { type: "RUN_STARTED", threadId: "t", runId } : { type: "RUN_STARTED", threadId: "t", runId, input };
const finished = (runId: string, outcome?: unknown): AguiEvent => ({ type: "RUN_FINISHED", threadId: "t", runId, outcome });

function after(...events: AguiEvent[]): Conversation {
  const conversation = new Conversation();
  let run = "";
  for (const event of events) {
    if (event.type === "RUN_STARTED") run = event.runId as string;
    conversation.apply(run, event);
  }
  return conversation;
}

let warn: ReturnType<typeof vi.spyOn>;
beforeEach(() => {
  warn = vi.spyOn(console, "warn").mockImplementation(() => undefined);
});
afterEach(() => warn.mockRestore());

describe("tool calls", () => {
  const parallel: AguiEvent[] = [
    started("r1"),
    { type: "TOOL_CALL_START", toolCallId: "a", toolCallName: "weather", parentMessageId: "m" },
    { type: "TOOL_CALL_START", toolCallId: "b", toolCallName: "weather", parentMessageId: "m" },
    { type: "TOOL_CALL_ARGS", toolCallId: "a", delta: '{"city":' },
    { type: "TOOL_CALL_ARGS", toolCallId: "b", delta: '{"city":"Porto"}' },
    { type: "TOOL_CALL_ARGS", toolCallId: "a", delta: '"Lisbon"}' },
  ];

  test("parallel calls keep their arguments apart", () => {
    const { messages } = after(...parallel);
    expect(messages).toHaveLength(1);
    expect(messages[0]!.toolCalls!.map((call) => call.function.arguments)).toEqual(['{"city":"Lisbon"}', '{"city":"Porto"}']);
  });

  test("a call is being written until its end", () => {
    const conversation = after(...parallel, { type: "TOOL_CALL_END", toolCallId: "b" });
    expect([conversation.isCalling("a"), conversation.isCalling("b")]).toEqual([true, false]);
  });

  test("a result changes what is shown with the message that holds the call", () => {
    const conversation = after(...parallel);
    const holder = conversation.messages[0]!;
    const before = conversation.transcript.version(holder);
    conversation.apply("r1", { type: "TOOL_CALL_RESULT", toolCallId: "b", messageId: "x", content: "sunny" });
    expect(conversation.transcript.version(holder)).toBeGreaterThan(before);
    expect(conversation.messages.map((message) => message.id)).toEqual(["m", "x"]);
  });

  test("a message and a call of the same id are not mixed up", () => {
    const conversation = after(
      started("r1"),
      { type: "TEXT_MESSAGE_START", messageId: "same", role: "assistant" },
      { type: "TOOL_CALL_START", toolCallId: "same", toolCallName: "f" },
      { type: "TOOL_CALL_END", toolCallId: "same" },
    );
    expect([conversation.isWriting("same"), conversation.isCalling("same")]).toEqual([true, false]);
  });
});

describe("how a run stands", () => {
  test.each([
    ["running", []],
    ["finished", [finished("r1")]],
    ["finished", [finished("r1", { type: "success" })]],
    ["finished", [finished("r1", { type: "of a later version" })]],
    ["stopped", [finished("r1", { type: "cancelled" })]],
    ["waiting", [finished("r1", { type: "interrupt", interrupts: [{ id: "i", reason: "confirmation" }] })]],
    ["failed", [{ type: "RUN_ERROR", message: "no", code: "agent_unreachable" }]],
    ["failed", [{ type: "RUN_ERROR", message: "no" }]],
    ["stopped", [{ type: "RUN_ERROR", message: "no", code: "stopped" }]],
    ["timed_out", [{ type: "RUN_ERROR", message: "no", code: "timed_out" }]],
    ["lost", [{ type: "RUN_ERROR", message: "no", code: "lost" }]],
    ["shut_down", [{ type: "RUN_ERROR", message: "no", code: "shut_down" }]],
    ["failed", [finished("r1"), { type: "RUN_ERROR", message: "late" }]],
  ] as [string, AguiEvent[]][])("%s after %j", (state, events) => {
    expect(after(started("r1"), ...events).run("r1")!.state).toBe(state);
  });

  test("an error before anything else still is a run", () => {
    const conversation = new Conversation();
    conversation.apply("r1", { type: "RUN_ERROR", message: "no" });
    expect(conversation.runs).toMatchObject([{ id: "r1", state: "failed", error: { message: "no" } }]);
  });

  test("the end is placed after the last message of its time", () => {
    const conversation = after(
      started("r1", { messages: [{ id: "u1", role: "user", content: "hi" }] }),
      { type: "RUN_ERROR", message: "no" },
      started("r2", { messages: [{ id: "u1", role: "user", content: "hi" }, { id: "u2", role: "user", content: "again" }] }),
      finished("r2"),
    );
    expect(conversation.runs.map((run) => run.anchor)).toEqual(["u1", "u2"]);
  });

  test("the end closes what was open, so that nothing looks as if it were still written", () => {
    const conversation = after(
      started("r1"),
      { type: "TEXT_MESSAGE_START", messageId: "m", role: "assistant" },
      { type: "STEP_STARTED", stepName: "search" },
    );
    expect([conversation.isWriting("m"), conversation.steps]).toEqual([true, ["search"]]);
    const before = conversation.transcript.version(conversation.messages[0]!);
    conversation.apply("r1", { type: "RUN_ERROR", message: "no" });
    expect([conversation.isWriting("m"), conversation.steps]).toEqual([false, []]);
    expect(conversation.transcript.version(conversation.messages[0]!)).toBeGreaterThan(before);
  });
});

describe("interrupts", () => {
  const asked = finished("r1", { type: "interrupt", interrupts: [{ id: "i1", reason: "confirmation", message: "Send it?" }] });

  test("a pending one stays through a run that fails", () => {
    const conversation = after(started("r1"), asked, started("r2"), { type: "RUN_ERROR", message: "no" });
    expect(conversation.pending.map((interrupt) => interrupt.id)).toEqual(["i1"]);
  });

  test("an answered one is gone when the next run finishes, and the answer is known", () => {
    const resume = [{ interruptId: "i1", status: "resolved", payload: { approved: true } }];
    const conversation = after(started("r1"), asked, started("r2", { messages: [], resume }), finished("r2"));
    expect(conversation.pending).toEqual([]);
    expect(conversation.answers.get("i1")).toEqual(resume[0]);
    expect(conversation.runs[0]!.interrupts![0]!.message).toBe("Send it?");
  });
});

describe("text", () => {
  test("halves of a surrogate pair that come in two deltas become one character", () => {
    const conversation = after(
      started("r1"),
      { type: "TEXT_MESSAGE_START", messageId: "m", role: "assistant" },
      { type: "TEXT_MESSAGE_CONTENT", messageId: "m", delta: "ok \ud83d" },
      { type: "TEXT_MESSAGE_CONTENT", messageId: "m", delta: "\ude80!" },
    );
    expect(plainText(conversation.messages[0]!.content)).toBe("ok 🚀!");
  });

  test("a replayed stream of chunks gives the same message once", () => {
    const events: AguiEvent[] = [
      started("r1"),
      { type: "TEXT_MESSAGE_CHUNK", messageId: "m", role: "assistant", delta: "Hel" },
      { type: "TEXT_MESSAGE_CHUNK", delta: "lo" },
      { type: "TOOL_CALL_CHUNK", toolCallId: "c", toolCallName: "f", parentMessageId: "m", delta: "{" },
      { type: "TOOL_CALL_CHUNK", delta: "}" },
      finished("r1"),
    ];
    const { messages } = after(...events);
    expect(messages).toMatchObject([{ id: "m", content: "Hello", toolCalls: [{ function: { arguments: "{}" } }] }]);
    expect(after(...events).messages).toEqual(messages);
  });

  test("parts other than text are left out of the text", () => {
    expect(plainText([{ type: "text", text: "a" }, { type: "image" }, { type: "text", text: "b" }])).toBe("ab");
  });
});

describe("what cannot be used is passed over", () => {
  test.each([
    ["an unknown type", { type: "SOMETHING_NEW", messageId: "m" }],
    ["a content for a message that is not there", { type: "TEXT_MESSAGE_CONTENT", messageId: "none", delta: "x" }],
    ["a start without an id", { type: "TEXT_MESSAGE_START" }],
    ["a call without a name", { type: "TOOL_CALL_START", toolCallId: "c" }],
    ["a patch that is no list", { type: "STATE_DELTA", delta: { op: "add" } }],
    ["a snapshot without messages", { type: "MESSAGES_SNAPSHOT" }],
    ["a chunk that names nothing", { type: "TEXT_MESSAGE_CHUNK", delta: "x" }],
    ["messages that are none", { type: "RUN_STARTED", runId: "r1", input: { messages: [null, 1, {}] } }],
  ] as [string, AguiEvent][])("%s", (_, event) => {
    const conversation = after(started("r1"), event);
    expect(conversation.messages).toEqual([]);
    expect(conversation.state).toEqual({});
  });

  test("a patch that does not apply leaves the state and says so", () => {
    const conversation = after(
      started("r1"),
      { type: "STATE_SNAPSHOT", snapshot: { n: 1 } },
      { type: "STATE_DELTA", delta: [{ op: "replace", path: "/n", value: 2 }, { op: "replace", path: "/gone", value: 3 }] },
    );
    expect(conversation.state).toEqual({ n: 1 });
    expect(warn).toHaveBeenCalledOnce();
  });
});
