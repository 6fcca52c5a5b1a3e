// Statements 36 to 39: the connection is lost. Each is tried by the page that started the run (run mode) and by one that came to
// it later (connect mode), on a thread each.

import assert from "node:assert/strict";
import { counted, counts, marks, text, waits } from "./script.mjs";
import { tokenOf } from "./tap.mjs";
import { until } from "./world.mjs";

// overAnother is the same world over a line of its own.
export const overAnother = async (w) => {
  const { line, url } = await w.desk("line");
  return Object.assign(Object.create(w), { line, url, runtime: `${url}/api/copilotkit`, tag: `${w.tag}-${line}` });
};

// onBoth tries something in both modes, one after the other, and gives what was measured a name.
const onBoth = async (w, attempt) => {
  const measured = {};
  for (const mode of ["run", "connect"]) {
    const way = await overAnother(w);
    for (const [name, value] of Object.entries(await attempt(way, mode))) measured[`${mode} mode: ${name}`] = value;
  }
  return { measured };
};

// watched is a page that follows a run: 20 words, then a gate, then 20 words more.
const watched = async (w, mode, steps = [counts(20), marks(w.gate(`half ${mode}`)), waits(w.gate(mode)), counts(20, 2)]) => {
  const [thread, runId] = [w.thread(mode), w.run()];
  const chat = await w.chat({ thread });
  let over;
  if (mode === "run") {
    over = chat.run(text(...steps), { runId });
  } else {
    await w.credentials(thread, runId, text(...steps));
    await w.desk("reached", { mark: w.gate(`half ${mode}`) });
    over = chat.connect();
  }
  await until("the page has the first half", () => chat.said(runId).startsWith(counted(20)));
  const socket = w.sockets().findLast((s) => s.joins.has(`thread:${thread}`));
  if (mode === "connect") await until("it has been told what there is", () => socket.frames.some((f) => f.event === "replay_complete"));
  return { chat, over, runId, thread, socket };
};

// caughtUp waits until the server knows that the client has everything: a ping came after the last frame, and the answer to a
// heartbeat, which follows the pong.
const caughtUp = async (socket) => {
  await until("a ping follows the last frame", () => socket.pings.at(-1)?.after === socket.frames.length);
  socket.send(JSON.stringify([null, "acknowledged", "phoenix", "heartbeat", {}]));
  await until("the server has read the pong", () => socket.frames.some((f) => f.ref === "acknowledged"));
};

// whole waits for the end, and fails unless the page has the run as the agent told it.
const whole = async (w, { chat, over, runId, thread }, ...ns) => {
  await over;
  assert.equal(chat.said(runId), counted(...ns));
  assert.equal(chat.events.filter((e) => e.type === "RUN_STARTED").length, 1);
  assert.equal(chat.roles(), "user assistant");
  chat.fine();
  await w.idle(thread);
};

// again is when the topic was joined anew on a later socket, since the first was gone.
const again = (w, { socket, thread }) => {
  const later = w.sockets().filter((s) => s.began > socket.began && s.joins.has(`thread:${thread}`));
  const frame = later.flatMap((s) => s.frames).find((f) => f.event === "phx_reply" && f.ref === f.joinRef && f.payload.status === "ok");
  return frame.at - socket.closed.at;
};

export const s36 = (w) => onBoth(w, async (way, mode) => {
  const page = await watched(way, mode);
  await caughtUp(page.socket);
  await way.desk("cut", { reset: mode === "run" });
  await until("it is joined again", () => way.sockets().at(-1).frames.length > 0 && way.sockets().length > 1);
  await way.release(way.gate(mode));
  await whole(way, page, 20, 20);
  const [token, ...others] = new Set(way.sockets().map(tokenOf));
  assert.deepEqual(others, [], "the token is the same");
  assert.equal(token, tokenOf(page.socket));
  const took = again(way, page);
  assert.ok(took < 500, `it took ${took} ms`);
  return { "joined again after ms": took };
});

// What is on its way is lost: the pongs of the client, or the events of the server.
export const s37 = async (w) => {
  const measured = {};
  for (const up of [true, false]) {
    const told = await onBoth(w, async (way, mode) => {
      const [before, after] = up ? [10, 10] : [10, 30];
      const half = [counts(20), marks(way.gate(`half ${mode}`)), waits(way.gate(mode)), counts(before), marks(way.gate(`lost ${mode}`)), waits(way.gate(`end ${mode}`)), counts(after, 2)];
      const page = await watched(way, mode, half);
      await caughtUp(page.socket);
      await way.desk("hold", { up });
      await way.release(way.gate(mode));
      await way.desk("reached", { mark: way.gate(`lost ${mode}`) });
      if (up) await until("the page has more than the server knows", () => page.chat.said(page.runId) === counted(20, before));
      else await way.desk("swallowed", { bytes: 1000 });
      await way.desk("cut", { reset: true });
      await until("new credentials are used", () => new Set(way.sockets().map(tokenOf)).size > 1);
      await way.release(way.gate(`end ${mode}`));
      await whole(way, page, 20, before, after);
      const refused = way.sockets(tokenOf(page.socket)).filter((s) => s !== page.socket);
      assert.ok(refused.length > 0 && refused.every((s) => s.refused.endsWith("403")), refused.map((s) => s.refused).join(", "));
      return { [`joined again after ms (${up ? "pongs" : "events"} lost)`]: again(way, page) };
    });
    Object.assign(measured, told.measured);
  }
  return { measured };
};

// The Go side restarts all nodes, one after the other; the agents come to their end while the first is restarted. Over each line
// requests go to the nodes in turn: of two pages that follow each other by one, one has its socket on that node.
export const s38 = async (w) => {
  const gate = w.gate("restart");
  const pages = [];
  for (const mode of ["run", "connect"]) {
    for (const turn of [0, 1]) {
      const way = await overAnother(w);
      if (turn === 1) await way.json("GET", "/api/agents");
      const steps = [counts(20), marks(way.gate(`half ${mode}`)), waits(gate), counts(20, 20)];
      pages.push({ way, mode, ...await watched(way, mode, steps) });
    }
  }
  await w.desk("restart", { gate });
  const measured = {};
  for (const page of pages) {
    await whole(page.way, page, 20, 20);
    if (page.socket.closed.code === 1012) measured[`${page.mode} mode: joined again after ms`] = again(page.way, page);
  }
  assert.equal(Object.keys(measured).length, 2, `the sockets were closed with ${pages.map((p) => p.socket.closed.code)}`);
  return { measured };
};

export const s39 = (w) => onBoth(w, async (way, mode) => {
  const page = await watched(way, mode, [counts(20), marks(way.gate(`half ${mode}`)), counts(150, 20)]);
  await way.desk("down");
  await new Promise((resolve) => setTimeout(resolve, 2000));
  await way.desk("up");
  await whole(way, page, 20, 150);
  return { "joined again after ms": again(way, page) };
});
