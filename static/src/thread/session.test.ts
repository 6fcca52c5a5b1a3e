// @vitest-environment jsdom
// The session against the real phoenix client, with a server of our own at the other end.
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { plainText, type AguiEvent } from "../agui/events";
import { Connection } from "./connection";
import { FakeServer } from "./fakeserver";
import { ThreadSession, isExpired } from "./session";

let server: FakeServer;
let session: ThreadSession;

beforeEach(async () => {
  vi.useFakeTimers();
  server = new FakeServer();
  const connection = new Connection({ transport: server.transport });
  session = new ThreadSession(connection, "T1", () => undefined);
  connection.connect();
  await settle();
});

afterEach(() => {
  session.close();
  vi.useRealTimers();
});

const settle = (ms = 0) => vi.advanceTimersByTimeAsync(ms);

function joined(reply: Record<string, unknown> = {}): void {
  server.reply("phx_join", { cursor: "0-0", resumed: false, running: false, runId: null, agentId: null, pending: [], ...reply });
}

function joinedAndCaughtUp(): void {
  joined();
  server.push("caught_up", { cursor: "0-0", running: false });
}

/** Sends events of a run from a seq on, one frame. */
function events(runId: string, run: number, seq: number, ...list: AguiEvent[]): void {
  server.push("ag_ui_events", { runId, from: `${run}-${seq}`, to: `${run}-${seq + list.length}`, replay: false, events: list });
}

const started = (runId: string, messages: unknown[] = []): AguiEvent => ({ type: "RUN_STARTED", threadId: "T1", runId, input: { messages } });
const finished = (runId: string): AguiEvent => ({ type: "RUN_FINISHED", threadId: "T1", runId });
const texts = () => session.messages.map((message) => plainText(message.content));

async function reconnect(): Promise<void> {
  server.socket.drop();
  await settle(200);
}

/** Sends a message and gives the id of the run that was asked for. */
function send(text: string): string {
  session.send(text, "demo");
  return server.sent("run").at(-1)!.runId as string;
}

describe("joining", () => {
  test("the first join asks for everything", () => {
    expect(server.sent("phx_join")).toEqual([{}]);
  });

  test("every later join resumes after the last event that was applied", async () => {
    joinedAndCaughtUp();
    events("r1", 1, 0, started("r1"));
    await reconnect();
    expect(server.sent("phx_join")).toEqual([{}, { after: "1-1" }]);
  });

  test("a cursor that the server does not know leads to a join from the beginning", async () => {
    joinedAndCaughtUp();
    events("r1", 1, 0, started("r1", [{ id: "u", role: "user", content: "hi" }]));
    await reconnect();
    server.reply("phx_join", { code: "bad_cursor" }, "error");
    await settle(2_000);
    expect(server.sent("phx_join").at(-1)).toEqual({});
    expect(texts()).toEqual([]);
  });

  test("a topic that the server closes is joined again", async () => {
    joinedAndCaughtUp();
    events("r1", 1, 0, started("r1"));
    server.push("phx_close", {});
    await settle(1_000);
    expect(server.sent("phx_join").at(-1)).toEqual({ after: "1-1" });
  });

  test("the connection is told as it is", async () => {
    expect(session.link).toBe("reconnecting"); // not joined yet
    joined();
    expect(session.link).toBe("connected");
    server.up = false;
    server.socket.drop();
    expect(session.link).toBe("reconnecting");
    await settle(16_000);
    expect(session.link).toBe("offline");
    server.up = true;
    await settle(5_000);
    joined();
    expect(session.link).toBe("connected");
  });

  test("a run that is going on shows as running at once, and how long it has been silent", () => {
    joined({ running: true, runId: "r1", agentId: "demo" });
    expect(session.active).toBe("r1");
    server.reply("status", { running: true, lastEventAgeMs: 60_000 });
    expect(Date.now() - session.lastEventAt).toBe(60_000);
  });

  test("old runs that are replayed do not look as if they were going on", () => {
    joined();
    server.push("ag_ui_events", { runId: "r1", from: "0-0", to: "1-1", replay: true, events: [started("r1")] });
    expect(session.active).toBeUndefined();
  });
});

describe("sending", () => {
  test("the message shows at once, and once only when the events bring it", () => {
    joinedAndCaughtUp();
    const runId = send("hi");
    expect(texts()).toEqual(["hi"]);
    const [request] = server.sent("run");
    expect(request).toMatchObject({ agentId: "demo", messages: [{ role: "user", content: "hi" }] });
    events(runId, 1, 0, started(runId, request!.messages as unknown[]));
    expect(texts()).toEqual(["hi"]);
    expect(session.messages[0]!.id).toBe((request!.messages as { id: string }[])[0]!.id);
  });

  test("the whole conversation goes along, except activities", () => {
    joinedAndCaughtUp();
    events("r1", 1, 0, started("r1", [{ id: "u", role: "user", content: "one" }]),
      { type: "ACTIVITY_SNAPSHOT", messageId: "act", activityType: "plan", content: {} },
      { type: "TEXT_MESSAGE_START", messageId: "a", role: "assistant" },
      { type: "TEXT_MESSAGE_CONTENT", messageId: "a", delta: "first" },
      { type: "TEXT_MESSAGE_END", messageId: "a" },
      { type: "STATE_SNAPSHOT", snapshot: { n: 1 } }, finished("r1"));
    send("two");
    const [request] = server.sent("run");
    expect((request!.messages as { role: string }[]).map((message) => message.role)).toEqual(["user", "assistant", "user"]);
    expect(request!.state).toEqual({ n: 1 });
  });

  test("while a run goes on nothing is sent", () => {
    joinedAndCaughtUp();
    const runId = send("hi");
    server.reply("run", { runId, cursor: "1-0" });
    expect(session.busy).toBe(true);
    session.send("again", "demo");
    expect(server.sent("run")).toHaveLength(1);
    events(runId, 1, 0, started(runId), finished(runId));
    expect([session.busy, session.runState]).toEqual([false, "finished"]);
  });

  test("events that overtake the answer count as one", () => {
    joinedAndCaughtUp();
    const runId = send("hi");
    events(runId, 1, 0, started(runId), finished(runId));
    expect(session.busy).toBe(false);
    server.reply("run", { runId, cursor: "1-0" });
    expect(session.busy).toBe(false);
  });

  test("a refusal takes the message back and gives the text to the composer", () => {
    joinedAndCaughtUp();
    send("hi");
    server.reply("run", { code: "thread_busy", message: "busy", runId: "other" }, "error");
    expect(texts()).toEqual([]);
    expect(session.returned).toBe("hi");
    expect(session.notice?.code).toBe("thread_busy");
    expect(session.busy).toBe(false);
  });

  test("an answer lost with the connection is asked for again, for the same run", async () => {
    joinedAndCaughtUp();
    const runId = send("hi");
    await reconnect();
    joined();
    expect(server.sent("run").map((request) => request.runId)).toEqual([runId, runId]);
    server.reply("run", { runId, cursor: "1-0" });
    expect(session.active).toBe(runId);
  });

  test("what is written without a connection goes out when it is back", async () => {
    joinedAndCaughtUp();
    server.up = false;
    await reconnect();
    session.send("hi", "demo");
    expect([server.sent("run").length, session.runState]).toEqual([0, "idle"]);
    server.up = true;
    await settle(5_000);
    joined();
    expect(server.sent("run")).toHaveLength(1);
  });

  test("what could not go out yet can be taken back", async () => {
    joinedAndCaughtUp();
    server.up = false;
    await reconnect();
    session.send("hi", "demo");
    session.stop();
    expect([session.busy, session.returned, texts()]).toEqual([false, "hi", []]);
  });

  test("after three questions without an answer the user is asked", async () => {
    joinedAndCaughtUp();
    const runId = send("hi");
    await settle(31_000);
    expect(server.sent("run").map((request) => request.runId)).toEqual([runId, runId, runId]);
    expect(session.outbox.stuck).toBe(true);
    session.outbox.retry();
    server.reply("run", { runId, cursor: "1-0" });
    expect([session.outbox.stuck, session.active]).toEqual([false, runId]);
  });
});

describe("stopping", () => {
  test("names the run, and is over when the run has ended", () => {
    joinedAndCaughtUp();
    const runId = send("hi");
    server.reply("run", { runId, cursor: "1-0" });
    events(runId, 1, 0, started(runId));
    session.stop();
    session.stop();
    expect(server.sent("stop")).toEqual([{ runId }]);
    expect(session.stopping).toBe(true);
    events(runId, 1, 1, { type: "RUN_FINISHED", threadId: "T1", runId, outcome: { type: "cancelled" } });
    server.reply("stop", { stopped: true, runId });
    expect([session.stopping, session.runState]).toEqual([false, "stopped"]);
  });

  test("a stop that is not confirmed says so, and may be tried again", async () => {
    joinedAndCaughtUp();
    const runId = send("hi");
    events(runId, 1, 0, started(runId));
    session.stop();
    await settle(36_000);
    expect([session.stopping, session.notice?.code]).toEqual([false, "stop"]);
  });
});

describe("answering an interrupt", () => {
  test("starts a run that carries the answer and no new message", () => {
    joinedAndCaughtUp();
    const interrupts = [{ id: "i1", reason: "confirmation" }];
    events("r1", 1, 0, started("r1"), { type: "RUN_FINISHED", threadId: "T1", runId: "r1", outcome: { type: "interrupt", interrupts } });
    expect(session.runState).toBe("waiting");
    session.resume([{ interruptId: "i1", status: "resolved", payload: { approved: true } }], "demo");
    expect(server.sent("run")).toMatchObject([
      { resume: [{ interruptId: "i1", status: "resolved", payload: { approved: true } }], messages: [] },
    ]);
  });

  test.each([
    ["2020-01-01T00:00:00Z", true],
    ["2999-01-01T00:00:00Z", false],
    ["soon", false],
    [undefined, false],
  ])("with expiresAt %s is expired: %s", (expiresAt, expired) => {
    expect(isExpired({ id: "i", reason: "x", expiresAt }, Date.parse("2026-01-01T00:00:00Z"))).toBe(expired);
  });
});

describe("resets and gaps", () => {
  test("a reset run stays on screen until it comes again", () => {
    joinedAndCaughtUp();
    events("r1", 1, 0, started("r1", [{ id: "u", role: "user", content: "hi" }]));
    server.push("reset", { runId: "r1", from: "1-0" });
    expect([session.held, session.log.cursor]).toEqual([true, "1-0"]);
    events("r1", 1, 0, started("r1", [{ id: "u", role: "user", content: "hi" }]), finished("r1"));
    expect([session.held, texts()]).toEqual([false, ["hi"]]);
  });

  test("a reset without anything after it shows what is left, soon", async () => {
    joinedAndCaughtUp();
    events("r1", 1, 0, started("r1", [{ id: "u", role: "user", content: "hi" }]));
    server.push("reset", { runId: "r1", from: "1-0" });
    await settle(400);
    expect([session.held, texts()]).toEqual([false, []]);
  });

  test("missing events are asked for by joining again, and what still comes is not shown", () => {
    joinedAndCaughtUp();
    events("r1", 1, 0, started("r1"));
    events("r1", 1, 5, finished("r1"));
    expect(server.sent("phx_join").at(-1)).toEqual({ after: "1-1" });
    expect(session.log.cursor).toBe("1-1");
    joined({ running: true, runId: "r1" });
    server.push("ag_ui_events", { runId: "r1", from: "1-1", to: "1-6", replay: true, events: [finished("r1")] });
    expect([session.log.cursor, session.runState]).toEqual(["1-6", "finished"]);
  });

  test("if that does not help, everything is asked for", () => {
    joinedAndCaughtUp();
    events("r1", 1, 0, started("r1"));
    events("r1", 1, 5, finished("r1"));
    joined();
    events("r1", 1, 5, finished("r1"));
    expect(server.sent("phx_join").at(-1)).toEqual({});
  });
});

describe("a deleted thread", () => {
  test("is said to be deleted, and not joined again", async () => {
    joinedAndCaughtUp();
    server.push("thread_deleted", {});
    server.push("phx_close", {});
    await settle(60_000);
    expect(session.deleted).toBe(true);
    expect(server.sent("phx_join")).toHaveLength(1);
    session.send("hi", "demo");
    expect(server.sent("run")).toHaveLength(0);
  });

  test("is recognised when it is joined", async () => {
    server.reply("phx_join", { code: "thread_deleted", message: "thread was deleted" }, "error");
    await settle(60_000);
    expect(session.deleted).toBe(true);
    expect(server.sent("phx_join")).toHaveLength(1);
  });
});

test("a closed session leaves its topic", () => {
  joinedAndCaughtUp();
  session.close();
  expect(server.sent("phx_leave")).toHaveLength(1);
});
