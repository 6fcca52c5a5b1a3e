// Statements 33 to 35: stopping.

import assert from "node:assert/strict";
import { packages } from "./clients.mjs";
import { ended, member, textOf } from "./run.mjs";
import { counted, counts, opens, script, started, text, waits } from "./script.mjs";
import { until } from "./world.mjs";

const never = (w) => [started, opens, counts(20), waits(w.gate("never"))];

// closed fails unless the thread's record ends as a stopped run should.
const closed = async (w, thread, runId) => {
  const info = await w.idle(thread);
  assert.deepEqual([info.runs.at(-1).runId, info.runs.at(-1).state], [runId, "stopped"]);
  const types = (await w.stored(thread)).filter((e) => e.runId === undefined || e.runId === runId).map((e) => e.type);
  assert.deepEqual(types.slice(-2), ["TEXT_MESSAGE_END", "RUN_FINISHED"]);
};

export const s33 = async (w) => {
  const [thread, runId] = [w.thread(), w.run()];
  const chat = await w.chat({ thread });
  const over = chat.run(never(w), { runId });
  await until("the page shows it", () => chat.said(runId) === counted(20));
  chat.stop();
  await over;
  assert.equal(w.sockets()[0].here, true, "the client closes its socket");
  await w.desk("hungup", { runId });
  await closed(w, thread, runId);
  chat.fine();
  const next = w.run();
  await chat.run(text(counts(3)), { runId: next });
  assert.equal(chat.said(next), counted(3));
  chat.fine();
};

export const s34 = async (w) => {
  const [thread, runId] = [w.thread(), w.run()];
  const { IntelligenceAgent } = packages.core;
  const agent = new IntelligenceAgent({ url: `${w.url}/client`, runtimeUrl: w.runtime, agentId: "default", headers: w.headers });
  agent.threadId = thread;
  const events = [];
  agent.subscribe({ onEvent: ({ event }) => void events.push(event) });
  agent.addMessage({ id: `u-${runId}`, role: "user", content: script(never(w)) });
  const over = agent.runAgent({ runId });
  await until("it has the text", () => textOf(events) === counted(20));
  const [socket] = w.sockets();
  agent.abortRun();
  await over;
  const { frames } = socket;
  const reply = frames.findIndex((f) => f.event === "phx_reply" && f.ref !== f.joinRef);
  const end = frames.findIndex((f) => f.payload.type === "RUN_FINISHED");
  assert.ok(end >= 0 && frames[end - 1].payload.type === "TEXT_MESSAGE_END", frames.slice(-5).map((f) => f.payload.type ?? f.event).join(" "));
  assert.ok(reply < 0 || reply > end, "the reply comes after the closing events");
  assert.equal(events.at(-1).type, "RUN_FINISHED");
  await closed(w, thread, runId);
};

export const s35 = async (w) => {
  const [thread, runId] = [w.thread(), w.run()];
  const credentials = await w.credentials(thread, runId, text(counts(20), waits(w.gate()), counts(10)));
  const m = await member(w, credentials, { stream_mode: "run", run_id: runId });
  await until("it is on its way", () => textOf(m.events) === counted(20));
  for (const payload of [{ run_id: "another" }, { run_id: `${runId}x` }, { run_id: 7 }]) {
    await new Promise((resolve) => {
      const push = m.channel.push("stop_run", payload);
      for (const status of ["ok", "error"]) push.receive(status, resolve);
    });
  }
  assert.equal((await w.json("GET", `/api/threads/${thread}`)).status.running, true);
  await w.release();
  await until("it ends", () => ended(m.events));
  assert.equal(textOf(m.events), counted(20, 10));
  assert.equal((await w.idle(thread)).runs.at(-1).state, "finished");
};
