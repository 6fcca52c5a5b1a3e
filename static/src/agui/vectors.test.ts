// The reducer and the chunk expansion against recorded results of the reference client.
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { ChunkExpander } from "./chunks";
import { Conversation } from "./conversation";
import type { AguiEvent, Interrupt, Message } from "./events";

// Patches that do not apply are part of the vectors; each is told on the console.
beforeAll(() => void vi.spyOn(console, "warn").mockImplementation(() => undefined));
afterAll(() => void vi.restoreAllMocks());

function load<T>(name: string): T[] {
  return JSON.parse(readFileSync(new URL(`./testdata/${name}.json`, import.meta.url), "utf8")) as T[];
}

interface ApplyCase {
  name: string;
  initialMessages?: Message[];
  initialState?: unknown;
  events: AguiEvent[];
  messages: Message[];
  state: unknown;
  pendingInterrupts?: Interrupt[];
}

// Shapes that AG-UI 1.0 retired: the page does not translate them.
const retired = new Set(["thinking-events-are-translated", "legacy-binary-part-is-upgraded"]);

describe.each(["replay-safe", "reference-divergence"])("apply/%s", (file) => {
  const cases = load<ApplyCase>(file).filter(({ name }) => !retired.has(name));
  test.each(cases.map((c) => [c.name, c] as const))("%s", (_, c) => {
    const conversation = new Conversation({ messages: c.initialMessages, state: c.initialState });
    for (const event of c.events) conversation.apply("r", event);
    expect(JSON.parse(JSON.stringify(conversation.messages))).toEqual(c.messages);
    expect(conversation.state).toEqual(c.state);
    expect(conversation.pending).toEqual(c.pendingInterrupts ?? []);
  });
});

interface ChunkCase {
  name: string;
  input: AguiEvent[];
  output: AguiEvent[];
  error?: string;
}

describe("chunks", () => {
  test.each(load<ChunkCase>("chunks").map((c) => [c.name, c] as const))("%s", (_, c) => {
    const expander = new ChunkExpander();
    const output: AguiEvent[] = [];
    const run = () => c.input.forEach((event) => output.push(...expander.expand(event)));
    if (c.error) expect(run).toThrow();
    else run();
    expect(output).toEqual(c.output);
  });
});
