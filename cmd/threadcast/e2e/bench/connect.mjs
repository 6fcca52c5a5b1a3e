// Statements 26 to 32: following a thread that others use.

import assert from "node:assert/strict";
import { packages } from "./clients.mjs";
import { member, textOf } from "./run.mjs";
import { counted, counts, failed, marks, opens, started, text, waits } from "./script.mjs";
import { until } from "./world.mjs";

// ran has a run happen on a thread, and waits until it is over.
const ran = async (w, thread, steps, runId = w.run()) => {
  await w.credentials(thread, runId, steps);
  await w.idle(thread);
  return runId;
};

// pushed are the events of a topic that a socket got, in order; those of AG-UI by their type.
const pushed = (socket) => socket.frames.filter((f) => f.event !== "phx_reply").map((f) => (f.event === "ag_ui_event" ? f.payload.type : f.event));
const joinOf = (socket, thread) => socket.joins.get(`thread:${thread}`).payload;

export const s26 = async (w) => {
  const thread = w.thread("never used");
  assert.equal((await w.reconnects(thread)).status, 204);
  assert.equal((await w.reconnects(thread, "3-7")).status, 204);
  const chat = await w.chat({ thread });
  const { newMessages } = await chat.connect();
  assert.deepEqual(newMessages, []);
  chat.fine();
  assert.equal(w.sockets().length, 0);
};

export const s27 = async (w) => {
  const thread = w.thread();
  const first = await ran(w, thread, text(counts(30)));
  const second = await ran(w, thread, text(counts(40)));
  const chat = await w.chat({ thread });
  await chat.connect();
  assert.equal(chat.roles(), "user assistant user assistant");
  assert.deepEqual(chat.agent.messages.map((m) => m.id), [`u-${first}`, `m-${first}`, `u-${second}`, `m-${second}`]);
  assert.equal(chat.said(first), counted(30));
  assert.equal(chat.said(second), counted(40));
  const [socket] = w.sockets();
  assert.deepEqual(joinOf(socket, thread), { stream_mode: "connect", last_seen_event_id: null });
  assert.deepEqual(pushed(socket).slice(-2), ["replay_complete", "stream_idle"]);
  await until("the client leaves", () => socket.closed);
  assert.equal(socket.closed.here, true);
  chat.fine();
};

export const s28 = async (w) => {
  const thread = w.thread();
  const first = await ran(w, thread, text(counts(30)));
  const chat = await w.chat({ thread });
  await chat.connect();
  const before = JSON.stringify(chat.agent.messages);
  const last = w.sockets()[0].frames.findLast((f) => f.event === "stream_idle").payload.latestEventId;
  await chat.connect();
  const again = w.sockets()[1];
  assert.equal(joinOf(again, thread).last_seen_event_id, last);
  assert.deepEqual(pushed(again), ["replay_complete", "stream_idle"]);
  assert.equal(JSON.stringify(chat.agent.messages), before);

  const second = await ran(w, thread, text(counts(20)));
  await chat.connect();
  const events = w.sockets()[2].frames.filter((f) => f.event === "ag_ui_event").map((f) => f.payload);
  assert.ok(events.every((e) => e.type !== "RUN_STARTED" || e.runId === second));
  assert.equal(chat.said(first), counted(30));
  assert.equal(chat.said(second), counted(20));
  assert.equal(chat.roles(), "user assistant user assistant");
  chat.fine();
};

export const s29 = async (w) => {
  const thread = w.thread();
  const first = await ran(w, thread, text(counts(10)));
  const second = w.run();
  await w.credentials(thread, second, text(counts(20), marks(w.gate("half")), waits(w.gate()), counts(30, 2)));
  await w.desk("reached", { mark: w.gate("half") });
  const chat = await w.chat({ thread });
  const over = chat.connect();
  const socket = await until("it is connected", () => w.sockets()[0]);
  await until("what was is there", () => pushed(socket).includes("replay_complete"));
  assert.ok(!pushed(socket).includes("stream_idle"));
  await until("the page shows it", () => chat.said(second) === counted(20));
  await w.release();
  await over;
  const order = pushed(socket);
  assert.equal(order.at(-1), "stream_idle");
  assert.equal(order.at(-2), "RUN_FINISHED");
  assert.equal(order.filter((e) => e === "stream_idle").length, 1);
  assert.ok(order.slice(order.indexOf("replay_complete")).filter((e) => e === "TEXT_MESSAGE_CONTENT").length >= 30);
  assert.equal(chat.said(first), counted(10));
  assert.equal(chat.said(second), counted(20, 30));
  chat.fine();
};

export const s30 = async (w) => {
  const [thread, runId] = [w.thread(), w.run()];
  await w.credentials(thread, runId, [started, opens, counts(5), marks(w.gate("half")), waits(w.gate("never"))]);
  await w.desk("reached", { mark: w.gate("half") });
  assert.equal((await (await w.reconnects(thread)).json()).runId, runId);
  const chat = await w.chat({ thread });
  const over = chat.connect();
  await until("the page shows it", () => chat.said(runId) === counted(5));
  chat.stop();
  await w.desk("hungup", { runId });
  await over;
  const info = await w.idle(thread);
  assert.equal(info.runs.at(-1).state, "stopped");
  chat.fine();
  await chat.run(text(counts(2)), { runId: "next" }); // the thread takes a new run
  assert.equal(chat.said("next"), counted(2));
};

export const s31 = async (w) => {
  const thread = w.thread();
  const broken = await ran(w, thread, [started, opens, counts(10), failed("long ago")]);
  const first = await w.chat({ thread });
  await first.connect();
  first.fine();
  assert.equal(first.said(broken), counted(10));
  assert.equal(first.roles(), "user assistant");

  const fine = await ran(w, thread, text(counts(5)));
  for (const path of ["/api/copilotkit", "/api/copilotkit-sse"]) {
    const chat = await w.chat({ thread, path });
    await chat.connect();
    chat.fine();
    assert.equal(chat.said(broken), counted(10), path);
    assert.equal(chat.said(fine), counted(5), path);
  }
};

export const s32 = async (w) => {
  const thread = w.thread();
  const first = await ran(w, thread, text(counts(30)));
  const second = await ran(w, thread, text(counts(10)));
  for (const cursor of ["9-9", "1-99999", "1767225600000-3", "of another server", "0-7"]) {
    const answer = await w.reconnects(thread, cursor);
    assert.equal(answer.status, 200, cursor);
    const m = await member(w, await answer.json(), { stream_mode: "connect", last_seen_event_id: cursor });
    await until(`${cursor}: it is over`, () => m.controls.some((c) => c.event === "stream_idle"));
    const types = m.events.map((e) => e.type);
    assert.ok(types.includes("MESSAGES_SNAPSHOT") && types.includes("STATE_SNAPSHOT"), `${cursor}: ${types}`);
    assert.equal(textOf(m.events), "", cursor);
    const { messages } = m.events.find((e) => e.type === "MESSAGES_SNAPSHOT");
    assert.deepEqual(messages.map((x) => x.id), [`u-${first}`, `m-${first}`, `u-${second}`, `m-${second}`], cursor);
    m.socket.disconnect();
  }
  // A page that has the messages, and a cursor that is not of this server.
  const { IntelligenceAgent } = packages.core;
  const shared = { lastSeenEventIds: new Map() };
  const agent = new IntelligenceAgent({ url: `${w.url}/client`, runtimeUrl: w.runtime, agentId: "default", headers: w.headers }, shared);
  agent.threadId = thread;
  await agent.connectAgent({});
  const before = agent.messages.map((m) => [m.id, m.role, m.content]);
  assert.equal(before.length, 4);
  shared.lastSeenEventIds.set(thread, "1767225600000-3");
  await agent.connectAgent({});
  assert.deepEqual(agent.messages.map((m) => [m.id, m.role, m.content]), before);
};
