// @vitest-environment jsdom
import { describe, expect, test } from "vitest";
import type { Run } from "../agui/conversation";
import type { Message } from "../agui/events";
import { items } from "./timeline";

const user = (id: string): Message => ({ id, role: "user", content: id });
const assistant = (id: string, calls: string[] = []): Message => ({
  id, role: "assistant", content: calls.length > 0 ? "" : id,
  toolCalls: calls.map((call) => ({ id: call, type: "function", function: { name: "f", arguments: "" } })),
});
const result = (id: string, toolCallId: string): Message => ({ id, role: "tool", toolCallId, content: "x" });
const keys = (messages: Message[], runs: Run[] = []) => items(messages, runs).map((item) => item.key);

describe("the conversation shows", () => {
  test("a result with its call, and a result without one by itself", () => {
    expect(keys([user("u"), assistant("a", ["c1"]), result("r1", "c1"), result("r2", "gone")])).toEqual(["u", "a", "r2"]);
  });

  test("no assistant message that says nothing and calls nothing", () => {
    expect(keys([{ id: "empty", role: "assistant", content: "" }, { id: "none", role: "assistant" }])).toEqual([]);
  });

  test("how a run ended after its last message, even if that is not shown", () => {
    const runs: Run[] = [
      { id: "r1", state: "stopped", anchor: "t" },
      { id: "r2", state: "finished", anchor: "b" },
      { id: "r3", state: "failed", anchor: "b" },
    ];
    expect(keys([assistant("a", ["c"]), result("t", "c"), assistant("b")], runs)).toEqual(["a", "end r1", "b", "end r3"]);
  });

  test("the end of a run without messages first", () => {
    expect(keys([user("u")], [{ id: "r1", state: "failed" }])).toEqual(["end r1", "u"]);
  });

  test("two messages of one id under two keys, with the end after the last", () => {
    const shown = keys([result("t", "x"), result("t", "x")], [{ id: "r1", state: "lost", anchor: "t" }]);
    expect(new Set(shown).size).toBe(3);
    expect(shown.at(-1)).toBe("end r1");
  });
});
