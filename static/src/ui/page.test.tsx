// @vitest-environment jsdom
// The page as a person meets it: what is typed, pressed and shown, with a server of our own at the other end.
import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { AguiEvent } from "../agui/events";
import { App } from "../app";
import { Connection } from "../thread/connection";
import { FakeServer } from "../thread/fakeserver";
import { Page } from "./page";

let server: FakeServer;
let app: App;
let root: HTMLElement;
const listed = [{ id: "T9", title: "An old one", state: "failed", activity: "2026-01-01T00:00:00Z" }];
const agents = [{ id: "demo", type: "demo", default: true }, { id: "other", type: "agui", default: false }];

beforeEach(async () => {
  vi.useFakeTimers();
  vi.stubGlobal("matchMedia", () => ({ matches: true }));
  vi.stubGlobal("ResizeObserver", class { observe() {} disconnect() {} });
  vi.stubGlobal("fetch", async (path: string) => ({
    ok: path === "/api/agents", status: 200, json: async () => ({ agents }),
  }));
  history.replaceState(null, "", "/");
  root = document.createElement("div");
  document.body.replaceChildren(root);
  server = new FakeServer();
  app = new App(new Connection({ transport: server.transport }));
  app.start();
  await act(() => render(<Page app={app} />, root));
  await settle();
  server.reply("phx_join", { running: false });
  server.reply("phx_join", { threads: listed, next: null }, "ok", "user");
  server.push("caught_up", { cursor: "0-0", running: false });
  await settle();
});

afterEach(() => {
  app.session.close();
  render(null, root);
  vi.clearAllTimers();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const settle = (ms = 50) =>
  act(async () => {
    await vi.advanceTimersByTimeAsync(ms);
  });
const find = <E extends HTMLElement = HTMLElement>(id: string) => root.querySelector<E>(`[data-testid="${id}"]`);
const shown = (id: string) => [...root.querySelectorAll<HTMLElement>(`[data-testid="${id}"]`)];

async function type(text: string): Promise<void> {
  const area = find<HTMLTextAreaElement>("composer")!;
  area.value = text;
  area.dispatchEvent(new Event("input", { bubbles: true }));
  await settle();
}

async function press(target: EventTarget, key: string, more: KeyboardEventInit = {}): Promise<void> {
  target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more }));
  await settle();
}

/** Sends a message and lets the run begin; gives the run's id. */
async function begin(text = "hi"): Promise<string> {
  await type(text);
  await press(find("composer")!, "Enter");
  const request = server.sent("run").at(-1)!;
  server.reply("run", { runId: request.runId, cursor: "1-0" });
  await events(request.runId as string, 0, { type: "RUN_STARTED", threadId: "T", runId: request.runId, input: { messages: request.messages } });
  return request.runId as string;
}

async function events(runId: string, seq: number, ...list: AguiEvent[]): Promise<void> {
  server.push("ag_ui_events", { runId, from: `1-${seq}`, to: `1-${seq + list.length}`, replay: false, events: list });
  await settle();
}

const finished = (runId: string, outcome?: unknown): AguiEvent => ({ type: "RUN_FINISHED", threadId: "T", runId, outcome });

describe("writing", () => {
  test("Enter sends, and the thread gets its address", async () => {
    await begin("Hello");
    expect(server.sent("run")).toMatchObject([{ agentId: "demo", messages: [{ role: "user", content: "Hello" }] }]);
    expect(location.pathname).toBe(`/t/${app.session.id}`);
    expect(shown("message").map((message) => message.dataset.role)).toEqual(["user"]);
    expect(find<HTMLTextAreaElement>("composer")!.value).toBe("");
    expect(document.title).toBe("● Hello – threadcast");
  });

  test.each([
    ["Shift+Enter", { shiftKey: true }],
    ["Enter while a word is being composed", { isComposing: true }],
  ])("%s does not send", async (_, more) => {
    await type("Hello");
    await press(find("composer")!, "Enter", more);
    expect(server.sent("run")).toEqual([]);
  });

  test("an empty message cannot be sent", async () => {
    await type("  \n ");
    expect(find<HTMLButtonElement>("send")!.disabled).toBe(true);
    await press(find("composer")!, "Enter");
    expect(server.sent("run")).toEqual([]);
  });

  test("what was typed is given back when the server refuses", async () => {
    await type("Hello");
    await press(find("composer")!, "Enter");
    server.reply("run", { code: "unavailable", message: "x" }, "error");
    await settle();
    await settle();
    expect(find<HTMLTextAreaElement>("composer")!.value).toBe("Hello");
    expect(find("error-notice")!.dataset.code).toBe("unavailable");
    expect(shown("message")).toEqual([]);
  });
});

describe("while a run goes on", () => {
  test("the button stops it, and so does Esc", async () => {
    const runId = await begin();
    expect(find("send")).toBeNull();
    expect(find("run-state")!.dataset.state).toBe("running");
    await press(document, "Escape");
    expect(server.sent("stop")).toEqual([{ runId }]);
    await events(runId, 1, finished(runId, { type: "cancelled" }));
    expect(find("run-state")!.dataset.state).toBe("stopped");
    expect(root.querySelector(".marker")!.textContent).toBe("Stopped");
  });

  test("a second message waits, with a hint", async () => {
    await begin();
    await type("and more");
    await press(find("composer")!, "Enter");
    expect(server.sent("run")).toHaveLength(1);
    expect(root.querySelector("#composer-hint")!.textContent).toMatch(/when this run has ended/);
  });

  test("the answer grows, and silence is counted", async () => {
    const runId = await begin();
    await events(runId, 1, { type: "TEXT_MESSAGE_START", messageId: "a", role: "assistant" },
      { type: "TEXT_MESSAGE_CONTENT", messageId: "a", delta: "Some **bo" });
    expect(shown("message").at(-1)!.querySelector("strong")!.textContent).toBe("bo");
    await events(runId, 3, { type: "TEXT_MESSAGE_CONTENT", messageId: "a", delta: "ld**" });
    expect(shown("message").at(-1)!.textContent).toContain("Some bold");
    await settle(12_000);
    expect(find("run-state")!.textContent).toMatch(/quiet for 1[12] s/);
  });
});

describe("a question", () => {
  async function ask(): Promise<void> {
    const runId = await begin();
    const interrupts = [{ id: "i1", reason: "confirmation", message: "Send it?" }];
    await events(runId, 1, finished(runId, { type: "interrupt", interrupts }));
  }

  test.each([
    ["approve", { approved: true }],
    ["decline", { approved: false }],
  ])("is answered with %s", async (button, payload) => {
    await ask();
    expect(find("interrupt")!.textContent).toContain("Send it?");
    await act(() => find(button)!.click());
    await settle();
    expect(server.sent("run").at(-1)!.resume).toEqual([{ interruptId: "i1", status: "resolved", payload }]);
    expect(find("interrupt")).toBeNull();
  });

  test("keeps the next message waiting", async () => {
    await ask();
    await type("never mind");
    expect(find<HTMLButtonElement>("send")!.disabled).toBe(true);
  });
});

describe("when a run fails", () => {
  test("it says so beside what is there, and offers to try again", async () => {
    const runId = await begin();
    await events(runId, 1, { type: "RUN_ERROR", code: "agent_unreachable", message: "The agent cannot be reached." });
    const notice = find("error-notice")!;
    expect([notice.dataset.code, notice.textContent]).toEqual(["agent_unreachable", expect.stringContaining("cannot be reached")]);
    await act(() => notice.querySelector("button")!.click());
    await settle();
    expect(server.sent("run").at(-1)).toMatchObject({ messages: [{ content: "hi" }] });
    expect(server.sent("run")).toHaveLength(2);
  });
});

describe("tools and state", () => {
  test("a call opens to its arguments and result", async () => {
    const runId = await begin();
    await events(runId, 1, { type: "TOOL_CALL_START", toolCallId: "c", toolCallName: "weather" },
      { type: "TOOL_CALL_ARGS", toolCallId: "c", delta: '{"city":"Lisbon"}' }, { type: "TOOL_CALL_END", toolCallId: "c" });
    const fold = find("tool-call") as HTMLDetailsElement;
    expect(fold.textContent).toMatch(/weatherLisbonrunning/);
    await events(runId, 4, { type: "TOOL_CALL_RESULT", toolCallId: "c", messageId: "r", content: '{"sky":"clear"}' });
    expect(fold.textContent).toMatch(/done/);
    fold.open = true;
    fold.dispatchEvent(new Event("toggle"));
    await settle();
    expect([...fold.querySelectorAll("pre")].map((pre) => pre.textContent)).toEqual(['{\n  "city": "Lisbon"\n}', '{\n  "sky": "clear"\n}']);
  });

  test("state is shown as soon as there is some", async () => {
    const runId = await begin();
    expect(find("state-panel")).toBeNull();
    await events(runId, 1, { type: "STATE_SNAPSHOT", snapshot: { progress: 50 } });
    expect(find("state-panel")!.textContent).toContain("progress50");
    await act(() => find("state-toggle")!.click());
    expect(find("state-panel")).toBeNull();
  });
});

describe("threads", () => {
  test("the list opens one, and a new one begins empty at the root", async () => {
    const [row] = shown("thread-item");
    expect(row!.dataset).toMatchObject({ id: "T9", state: "failed" });
    await act(() => row!.click());
    await settle();
    expect(location.pathname).toBe("/t/T9");
    expect(server.frames.at(-1)).toMatchObject([expect.anything(), expect.anything(), "thread:T9", "phx_join", {}]);
    await act(() => find("new-thread")!.click());
    await settle();
    expect(location.pathname).toBe("/");
    expect(app.session.id).not.toBe("T9");
    expect(shown("suggestion").length).toBeGreaterThan(3);
  });

  test("a suggestion is sent as it is", async () => {
    await act(() => shown("suggestion")[0]!.click());
    await settle();
    expect(server.sent("run")).toMatchObject([{ messages: [{ content: "Hello! What is threadcast?" }] }]);
  });

  test("the agent that is chosen gets the message", async () => {
    const select = find<HTMLSelectElement>("agent")!;
    select.value = "other";
    select.dispatchEvent(new Event("change", { bubbles: true }));
    await settle();
    await begin();
    expect(server.sent("run")).toMatchObject([{ agentId: "other" }]);
  });

  test("one that is deleted elsewhere says so", async () => {
    await begin();
    server.push("thread_deleted", {});
    await settle();
    expect(find("deleted-notice")!.textContent).toContain("was deleted");
    expect(find<HTMLTextAreaElement>("composer")!.disabled).toBe(true);
  });
});

test("the pill follows the connection", async () => {
  expect(find("pill")!.dataset.state).toBe("connected");
  server.up = false;
  server.socket.drop();
  await settle();
  expect([find("pill")!.dataset.state, find("pill")!.textContent]).toEqual(["reconnecting", "reconnecting…"]);
});
