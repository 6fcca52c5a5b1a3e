// Statements 17 to 25: runs.

import assert from "node:assert/strict";
import { counted, counts, failed, finished, marks, opens, says, started, text, waits } from "./script.mjs";
import { until } from "./world.mjs";

// member joins the topic of credentials with phoenix itself, and keeps the events that it gets.
export const member = async (w, { joinToken, realtime }, payload) => {
  const socket = w.phoenix("/client", { params: { join_token: joinToken } });
  const channel = socket.channel(realtime.topic, payload);
  const m = { socket, channel, events: [], controls: [] };
  channel.on("ag_ui_event", (event) => m.events.push(event));
  for (const event of ["replay_complete", "stream_idle", "replay_failed"]) {
    channel.on(event, (control) => m.controls.push({ event, after: m.events.length, ...control }));
  }
  const answer = await new Promise((resolve) => {
    const join = channel.join();
    for (const status of ["ok", "error", "timeout"]) join.receive(status, (response) => resolve({ status, response }));
  });
  if (answer.status === "ok") return m;
  socket.disconnect();
  throw new Error(`the join is answered ${JSON.stringify(answer)}`);
};

export const ended = (events) => events.some((e) => e.type === "RUN_FINISHED" || e.type === "RUN_ERROR");
export const textOf = (events) => events.filter((e) => e.type === "TEXT_MESSAGE_CONTENT").map((e) => e.delta).join("");

export const s17 = async (w) => {
  const [thread, runId] = [w.thread("of four fields"), w.run()];
  const credentials = await w.credentials(thread, runId, text(counts(3)));
  assert.deepEqual(Object.keys(credentials).sort(), ["joinToken", "realtime", "runId", "threadId"]);
  assert.equal(credentials.threadId, thread);
  assert.equal(credentials.runId, runId);
  assert.equal(credentials.realtime.clientUrl, `${w.url.replace("http", "ws")}/client`);
  assert.equal(credentials.realtime.topic, `thread:${thread}`);
  assert.match(credentials.joinToken, /^[^/]+$/);

  const chat = await w.chat({ thread: w.thread("of a page") });
  const second = w.run();
  const { newMessages } = await chat.run(text(counts(50, 2)), { runId: second });
  assert.deepEqual(newMessages.map((m) => m.content), [counted(50)]);
  assert.equal(chat.said(second), counted(50));
  chat.fine();
};

export const s18 = async (w) => {
  const runId = w.run();
  const steps = text(counts(300), marks(w.gate("before")), waits(w.gate()), counts(5));
  const credentials = await w.credentials(w.thread(), runId, steps);
  await w.desk("reached", { mark: w.gate("before") });
  const m = await member(w, credentials, { stream_mode: "run", run_id: runId });
  await until("what went before is there", () => textOf(m.events) === counted(300));
  await w.release();
  await until("the run ends", () => ended(m.events));
  assert.equal(textOf(m.events), counted(300, 5));
  assert.equal(m.events.filter((e) => e.type === "RUN_STARTED").length, 1);
};

// Every socket of the bench is looked at for it in tap.mjs; here that the ids differ, and that an agent's own metadata stays.
export const s19 = async (w) => {
  const runId = w.run();
  const foreign = { ...says("x"), metadata: { mine: 1, cpki_event_id: "of the agent", cpki_event_seq: 99 } };
  const credentials = await w.credentials(w.thread(), runId, text(counts(20), waits(w.gate()), foreign));
  const m = await member(w, credentials, { stream_mode: "run", run_id: runId });
  await w.release();
  await until("the run ends", () => ended(m.events));
  const ids = m.events.map((e) => e.metadata.cpki_event_id);
  assert.equal(new Set(ids).size, ids.length);
  assert.ok(ids.every((id) => typeof id === "string" && id !== "" && !id.startsWith("cpki_ingested")));
  const got = m.events.find((e) => e.delta?.endsWith("x")).metadata; // deltas may come in one
  assert.equal(got.mine, 1);
  assert.notEqual(got.cpki_event_id, "of the agent");
};

export const s20 = async (w) => {
  const thread = w.thread();
  const [first, second] = [w.run(), w.run()];
  const before = await w.credentials(thread, w.run("before"), text(counts(3)));
  await w.idle(before.threadId);
  const credentials = await w.credentials(thread, first, text(counts(3)));
  const m = await member(w, credentials, { stream_mode: "run", run_id: first });
  await until("the run ends", () => ended(m.events));
  await w.idle(thread);
  const next = await member(w, await w.credentials(thread, second, text(counts(3))), { stream_mode: "run", run_id: second });
  await until("the second run ends", () => ended(next.events));
  await new Promise((resolve) => m.socket.ping(resolve));
  for (const [events, run] of [[m.events, first], [next.events, second]]) {
    assert.equal(textOf(events), counted(3));
    assert.deepEqual([...new Set(events.map((e) => e.runId).filter(Boolean))], [run]);
    assert.equal(events[0].type, "RUN_STARTED");
  }
};

const tool = { type: "TOOL_CALL_START", toolCallId: "c-{run}", toolCallName: "look", parentMessageId: "m-{run}" };
const argues = { type: "TOOL_CALL_ARGS", toolCallId: "c-{run}", delta: '{"at":' };
const steps = (...names) => names.map((stepName) => ({ type: "STEP_STARTED", stepName }));

export const s21 = async (w) => {
  const [thread, runId] = [w.thread(), w.run()];
  const chat = await w.chat({ thread });
  const all = [started, ...steps("outer", "inner"), opens, counts(5), tool, argues, marks(w.gate("all open")), waits(w.gate("never"))];
  const over = chat.run(all, { runId });
  await w.desk("reached", { mark: w.gate("all open") });
  await until("the page has it", () => chat.types().includes("TOOL_CALL_ARGS"));
  await w.json("POST", `/api/threads/${thread}/stop`, { runId }); // by somebody else
  await over;
  chat.fine();
  const end = chat.events.at(-1);
  assert.deepEqual([end.type, end.threadId, end.runId], ["RUN_FINISHED", thread, runId]);
  const types = chat.types();
  for (const close of ["TEXT_MESSAGE_END", "TOOL_CALL_END", "STEP_FINISHED"]) assert.ok(types.includes(close), `${close} of ${types}`);
  assert.deepEqual(chat.events.filter((e) => e.type === "STEP_FINISHED").map((e) => e.stepName).sort(), ["inner", "outer"]);
  const [socket] = w.sockets();
  await until("the client leaves", () => socket.closed);
  assert.equal(socket.closed.here, true);
  assert.equal(w.sockets().length, 1);
};

export const s22 = async (w) => {
  const thread = w.thread();
  const [first, second] = [w.run(), w.run()];
  const [one, two] = [await w.chat({ thread }), await w.chat({ thread })];
  const over = one.run(text(counts(10), waits(w.gate()), counts(10)), { runId: first });
  await until("the first run is on its way", () => one.said(first) === counted(10));
  await two.run(text(counts(1)), { runId: second });
  assert.deepEqual(two.errors.map((e) => e.code), ["agent_thread_locked", "agent_run_failed"]);
  assert.match(two.errors[0].message, /is locked$/);
  assert.equal((await w.request("POST", "/api/copilotkit/agent/default/run", w.input(thread, w.run(), []))).status, 409);
  await w.release();
  await over;
  one.fine();
  assert.equal(one.said(first), counted(10, 10));
};

export const s23 = async (w) => {
  for (const [name, apart] of [["slowly", 1], ["at once", 0]]) {
    const [thread, runId] = [w.thread(name), w.run()];
    const chat = await w.chat({ thread });
    await chat.run([started, opens, counts(200, apart), failed("the model went home")], { runId });
    assert.equal(chat.said(runId), counted(200), name);
    assert.ok(chat.errors.length > 0, name);
    for (const { message } of chat.errors) assert.equal(message, "the model went home");
  }
};

export const s24 = async (w) => {
  const [thread, runId] = [w.thread(), w.run()];
  const { joinToken } = await w.credentials(thread, runId, text(waits(w.gate())));
  // Changed anywhere, it is not one of this server.
  for (let at = 0; at < joinToken.length - 1; at += 7) { // the last letter may hold bits that mean nothing
    const other = joinToken[at] === "A" ? "B" : "A";
    const forged = joinToken.slice(0, at) + other + joinToken.slice(at + 1);
    assert.equal(await w.refusal(w.joinPath({ joinToken: forged })), 403, `changed at ${at} of ${joinToken.length}`);
  }
  for (const cut of [joinToken.slice(0, -1), joinToken.slice(1), joinToken + "A", `${joinToken}.${joinToken}`]) {
    assert.equal(await w.refusal(w.joinPath({ joinToken: cut })), 403);
  }
  // A token is for its thread and its run.
  for (const [topic, payload] of [["thread:another", { stream_mode: "run", run_id: runId }], [`thread:${thread}`, { stream_mode: "run", run_id: "another" }]]) {
    const credentials = await w.credentials(w.thread(`${topic} ${payload.run_id}`), w.run(), text(waits(w.gate("others"))));
    await assert.rejects(member(w, { ...credentials, realtime: { topic } }, payload), /"status":"error"/);
    await w.release(w.gate("others"));
  }
  await w.release();
  // Once its stream is over, a token has expired.
  const chat = await w.chat({ thread: w.thread("over") });
  await chat.run(text(counts(2)));
  const used = w.sockets().at(-1);
  await until("the client leaves", () => used.closed);
  assert.equal(await w.refusal(new URL(used.url).pathname + new URL(used.url).search), 403);
};

export const s25 = async (w) => {
  const [first, second] = [w.run(), w.run()];
  const chat = await w.chat({ thread: w.thread() });
  const interrupt = { id: "i1", reason: "approval", message: "May I?" };
  await chat.run([started, { ...finished, outcome: { type: "interrupt", interrupts: [interrupt] } }], { runId: first });
  const resume = [{ interruptId: "i1", status: "resolved", payload: { yes: true, n: 12 } }];
  await chat.core.runAgent({ agent: chat.agent, runId: second, resume, forwardedProps: { script: JSON.stringify(text(counts(2))) } });
  assert.deepEqual((await w.desk("asked", { runId: second })).resume, resume);
  assert.equal(chat.said(second), counted(2));
  chat.fine();
};
