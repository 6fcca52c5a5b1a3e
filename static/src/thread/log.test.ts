import { describe, expect, test } from "vitest";
import { plainText, type AguiEvent } from "../agui/events";
import { ThreadLog } from "./log";

/** A log that takes events one frame at a time, with the cursors that the server would give. */
class Feed {
  readonly log = new ThreadLog();
  private seqs = new Map<number, number>();

  send(run: number, ...events: AguiEvent[]): boolean {
    const seq = this.seqs.get(run) ?? 0;
    this.seqs.set(run, seq + events.length);
    return this.log.add({ runId: `r${run}`, from: `${run}-${seq}`, to: `${run}-${seq + events.length}`, events });
  }

  run(run: number, user: string, ...words: string[]): void {
    this.send(run, { type: "RUN_STARTED", threadId: "t", runId: `r${run}`, input: { messages: [{ id: `u${run}`, role: "user", content: user }] } });
    this.send(run, { type: "TEXT_MESSAGE_START", messageId: `a${run}`, role: "assistant" });
    for (const delta of words) this.send(run, { type: "TEXT_MESSAGE_CONTENT", messageId: `a${run}`, delta });
    this.send(run, { type: "TEXT_MESSAGE_END", messageId: `a${run}` });
    this.send(run, { type: "RUN_FINISHED", threadId: "t", runId: `r${run}` });
  }

  forget(run: number): void {
    this.seqs.delete(run);
    this.log.reset({ runId: `r${run}`, from: `${run}-0` });
  }

  get texts(): string[] {
    return this.log.conversation.messages.map((message) => plainText(message.content));
  }
}

describe("the cursor", () => {
  test("is the position after the last frame", () => {
    const feed = new Feed();
    expect(feed.log.cursor).toBe("");
    feed.run(3, "hi", "a", "b");
    expect(feed.log.cursor).toBe("3-6");
  });

  test("goes back with a reset, and follows a position given without events", () => {
    const feed = new Feed();
    feed.run(1, "hi", "a");
    feed.forget(1);
    expect(feed.log.cursor).toBe("1-0");
    feed.log.advance("1-9");
    feed.log.advance(undefined);
    expect(feed.log.cursor).toBe("1-9");
  });
});

describe("a frame that does not continue its run", () => {
  test.each([
    ["because events are missing", "1-6", "1-7"],
    ["because events come again", "1-4", "1-5"],
  ])("is refused %s", (_, from, to) => {
    const feed = new Feed();
    feed.run(1, "hi", "a");
    const frame = { runId: "r1", from, to, events: [{ type: "STATE_SNAPSHOT", snapshot: 1 }] };
    expect(feed.log.add(frame)).toBe(false);
    expect(feed.log.cursor).toBe("1-5");
    expect(feed.log.conversation.state).toEqual({});
  });

  test("is taken when it begins another run", () => {
    const feed = new Feed();
    feed.run(1, "hi", "a");
    expect(feed.log.add({ runId: "r2", from: "1-6", to: "2-1", events: [] })).toBe(true);
  });
});

describe("a reset", () => {
  test("drops one run's events, and what comes instead takes their place", () => {
    const feed = new Feed();
    feed.run(1, "one", "first");
    feed.run(2, "two", "sec", "ond");
    feed.forget(2);
    expect(feed.texts).toEqual(["one", "first"]);
    feed.run(2, "two", "second");
    expect(feed.texts).toEqual(["one", "first", "two", "second"]);
    expect(feed.log.conversation.runs.map((run) => run.id)).toEqual(["r1", "r2"]);
  });

  test("of an earlier run keeps the later one, in order", () => {
    const feed = new Feed();
    feed.run(1, "one", "first");
    feed.run(2, "two", "second");
    feed.forget(1);
    feed.run(1, "one", "first, compacted");
    expect(feed.texts).toEqual(["one", "first, compacted", "two", "second"]);
  });

  test("without a run drops everything", () => {
    const feed = new Feed();
    feed.run(1, "one", "first");
    feed.log.reset({ runId: null, from: "0-0" });
    expect(feed.texts).toEqual([]);
    expect(feed.log.add({ runId: "r9", from: "0-0", to: "9-1", events: [] })).toBe(true);
  });

  test("of a run that is not known changes nothing but the position", () => {
    const feed = new Feed();
    feed.run(1, "one", "first");
    feed.log.reset({ runId: "r7", from: "7-0" });
    expect(feed.texts).toEqual(["one", "first"]);
    expect(feed.log.cursor).toBe("7-0");
  });
});

describe("building again from what was kept", () => {
  const events: AguiEvent[] = [
    { type: "RUN_STARTED", threadId: "t", runId: "r1" },
    { type: "TEXT_MESSAGE_CHUNK", messageId: "m", delta: "ok \ud83d" },
    { type: "TEXT_MESSAGE_CHUNK", delta: "\ude80" },
    { type: "STATE_SNAPSHOT", snapshot: { steps: [] } },
    { type: "STATE_DELTA", delta: [{ op: "add", path: "/steps/-", value: { done: false } }] },
    { type: "STATE_DELTA", delta: [{ op: "replace", path: "/steps/0/done", value: true }] },
    { type: "TOOL_CALL_START", toolCallId: "c", toolCallName: "f" },
    { type: "TOOL_CALL_ARGS", toolCallId: "c", delta: '{"a":' },
    { type: "TOOL_CALL_ARGS", toolCallId: "c", delta: "1}" },
    { type: "TOOL_CALL_ARGS", toolCallId: "c", delta: "", metadata: { n: 1 } },
    { type: "TOOL_CALL_END", toolCallId: "c" },
    { type: "MESSAGES_SNAPSHOT", messages: [{ id: "m", role: "assistant", content: "kept" }] },
    { type: "TEXT_MESSAGE_START", messageId: "m" },
    { type: "TEXT_MESSAGE_CONTENT", messageId: "m", delta: " and" },
    { type: "TEXT_MESSAGE_CONTENT", messageId: "m", delta: " more" },
    { type: "TEXT_MESSAGE_END", messageId: "m" },
    { type: "RUN_FINISHED", threadId: "t", runId: "r1" },
  ];

  test("gives what the live events gave", () => {
    const feed = new Feed();
    for (const event of events) feed.send(1, structuredClone(event));
    const { messages, state } = feed.log.conversation;
    const live = structuredClone({ messages, state });
    feed.log.reset({ runId: "r2", from: "2-0" }); // makes it build again
    const again = feed.log.conversation;
    expect({ messages: again.messages, state: again.state }).toEqual(live);
    expect(live.messages).toMatchObject([{ id: "m", content: "kept and more" }]);
    expect(live.state).toEqual({ steps: [{ done: true }] });
  });

  test("does not change the events that a frame brought", () => {
    const feed = new Feed();
    const given = structuredClone(events);
    feed.send(1, ...given);
    expect(given).toEqual(events);
  });
});
