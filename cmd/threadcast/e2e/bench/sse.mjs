// Statements 46 to 50: server-sent events.

import assert from "node:assert/strict";
import { HttpAgent } from "@ag-ui/client";
import { counted, counts, failed, marks, opens, script, started, text, waits } from "./script.mjs";
import { until, within } from "./world.mjs";

const sse = "/api/copilotkit-sse";

// stream is an SSE response as it comes.
const stream = async (w, method, input, { agent = "default", signal } = {}) => {
  const response = await w.request("POST", `${sse}/agent/${agent}/${method}`, input, { headers: { Accept: "text/event-stream" }, signal });
  const s = { response, body: "", over: false };
  s.done = (async () => {
    for await (const chunk of response.body) s.body += Buffer.from(chunk).toString("latin1");
    s.over = true;
  })();
  s.done.catch(() => {}); // who waits for it is told
  // events are what came so far, read as the client does: frames end with two LF.
  s.events = () => s.body.split("\n\n").slice(0, -1).flatMap((frame) => {
    const data = frame.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trimStart());
    return data.length === 0 ? [] : [JSON.parse(Buffer.from(data.join("\n"), "latin1").toString("utf8"))];
  });
  s.types = () => s.events().map((e) => e.type);
  return s;
};

const empty = (w, thread) => ({ ...w.input(thread, w.run("c"), []), messages: [] });
const textOf = (events) => events.filter((e) => e.type === "TEXT_MESSAGE_CONTENT").map((e) => e.delta).join("");

export const s46 = async (w) => {
  const cases = {
    "an agent that finishes": [text(counts(20)), "RUN_FINISHED"],
    "an agent that fails": [[started, opens, counts(3), failed("no")], "RUN_ERROR"],
    "an agent that ends without an end": [[started, opens, counts(3)], "RUN_ERROR"],
    "an agent that breaks off": [[started, opens, counts(3), { $panic: "boom" }], "RUN_ERROR"],
    "an agent that says nothing": [[], "RUN_ERROR"],
  };
  for (const [name, [steps, end]] of Object.entries(cases)) {
    const [thread, runId] = [w.thread(name), w.run()];
    const s = await stream(w, "run", w.input(thread, runId, steps));
    await within(name, s.done);
    assert.equal(s.response.status, 200, name);
    assert.match(s.response.headers.get("content-type"), /^text\/event-stream/, name);
    assert.ok(!s.body.includes("\r"), name);
    assert.ok(s.body.endsWith("\n\n"), name);
    assert.equal(s.types().at(-1), end, name);
    assert.equal(s.types()[0], "RUN_STARTED", name);
    const last = s.events().at(-1);
    if (end === "RUN_FINISHED") assert.deepEqual([last.threadId, last.runId], [thread, runId], name);
  }
};

export const s47 = async (w) => {
  const [thread, runId] = [w.thread(), w.run()];
  const s = await stream(w, "run", w.input(thread, runId, [started, opens, counts(5), waits(w.gate("never"))]));
  await until("it is on its way", () => textOf(s.events()) === counted(5));
  const idle = await w.json("POST", `${sse}/agent/default/stop/${encodeURIComponent(w.thread("idle"))}`, {});
  assert.equal(idle.stopped, false);
  const other = await w.json("POST", `${sse}/agent/default/stop/${thread}`, { runId: "another" });
  assert.equal(other.stopped, false);
  assert.equal(s.over, false);
  assert.equal((await w.request("POST", `${sse}/agent/default/stop/${thread}`, { threadId: thread })).status, 400);
  const answer = await w.json("POST", `${sse}/agent/default/stop/${thread}`, { runId });
  assert.equal(answer.stopped, true);
  await within("the response ends", s.done);
  assert.deepEqual(s.types().slice(-2), ["TEXT_MESSAGE_END", "RUN_FINISHED"]);
  await w.desk("hungup", { runId });

  const [second, page] = [w.run(), await w.chat({ path: sse, thread: w.thread("of a page") })];
  const over = page.run([started, opens, counts(5), waits(w.gate("never"))], { runId: second });
  await until("the page shows it", () => page.said(second) === counted(5));
  page.stop();
  await over;
  assert.deepEqual(page.types().slice(-2), ["TEXT_MESSAGE_END", "RUN_FINISHED"]);
  page.fine();
};

export const s48 = async (w) => {
  const unknown = await stream(w, "connect", empty(w, w.thread("unknown")));
  await unknown.done;
  assert.deepEqual([unknown.response.status, unknown.body], [200, ""]);

  const thread = w.thread();
  const first = w.run();
  await w.credentials(thread, first, text(counts(10)));
  await w.idle(thread);
  const history = await stream(w, "connect", empty(w, thread));
  await within("the response of an idle thread ends", history.done);
  const second = w.run();
  await w.credentials(thread, second, text(counts(20), marks(w.gate("half")), waits(w.gate()), counts(30, 2)));
  await w.desk("reached", { mark: w.gate("half") });
  const s = await stream(w, "connect", empty(w, thread));
  await until("what was is there", () => textOf(s.events()) === counted(10, 20));
  assert.equal(s.over, false);
  const chat = await w.chat({ path: sse, thread });
  const followed = chat.connect();
  await until("the page shows it", () => chat.said(second) === counted(20));
  await w.release();
  await within("the response ends", s.done);
  await followed;
  assert.equal(textOf(s.events()), counted(10, 20, 30));
  assert.equal(s.types().at(-1), "RUN_FINISHED");
  assert.equal(chat.said(first), counted(10));
  assert.equal(chat.said(second), counted(20, 30));
  assert.equal(chat.roles(), "user assistant user assistant");
  chat.fine();
};

export const s49 = async (w) => {
  const thread = w.thread();
  const first = w.run();
  const s = await stream(w, "run", w.input(thread, first, text(counts(5), waits(w.gate()), counts(5))));
  await until("it is on its way", () => textOf(s.events()) === counted(5));
  const busy = await w.request("POST", `${sse}/agent/default/run`, w.input(thread, w.run(), text(counts(1))));
  assert.equal(busy.status, 409);
  assert.match(await busy.text(), /\w+ \w+/, "people are told why");
  const chat = await w.chat({ path: sse, thread });
  await chat.run(text(counts(1)));
  assert.ok(chat.errors.some((e) => e.code === "agent_run_failed" && e.message.includes("409")), JSON.stringify(chat.errors));
  await w.release();
  await within("the first run ends", s.done);
  assert.equal(textOf(s.events()), counted(5, 5));
};

export const s50 = async (w) => {
  const warnings = [];
  const warn = console.warn;
  console.warn = (...words) => void warnings.push(words.map(String).join(" "));
  try {
    for (const path of [`${sse}/agent/default/run`, "/agui/default"]) {
      const [threadId, runId] = [w.thread(path), w.run()];
      const agent = new HttpAgent({ url: w.url + path, threadId, headers: w.headers });
      const tool = [
        { type: "TOOL_CALL_START", toolCallId: "c", toolCallName: "look", parentMessageId: "m-{run}" },
        { type: "TOOL_CALL_ARGS", toolCallId: "c", delta: "{}" },
        { type: "TOOL_CALL_END", toolCallId: "c" },
        { type: "TOOL_CALL_RESULT", toolCallId: "c", messageId: "result-{run}", role: "tool", content: "seen" },
        { type: "STATE_SNAPSHOT", snapshot: { n: 1 } },
        { type: "STATE_DELTA", delta: [{ op: "replace", path: "/n", value: 2 }] },
      ];
      agent.addMessage({ id: `u-${runId}`, role: "user", content: script(text(counts(20), ...tool)) });
      const { newMessages } = await within(path, agent.runAgent({ runId }));
      assert.equal(newMessages.find((m) => m.id === `m-${runId}`).content, counted(20), path);
      assert.deepEqual(agent.state, { n: 2 }, path);
      assert.deepEqual(newMessages.map((m) => m.role), ["assistant", "tool"], path);
      assert.deepEqual(warnings, [], path);
    }
  } finally {
    console.warn = warn;
  }
};
