// Statements 1 to 12: the socket, as the phoenix package uses it.

import assert from "node:assert/strict";
import { counts, started, opens, text, waits } from "./script.mjs";
import { tokenOf } from "./tap.mjs";
import { until } from "./world.mjs";

// ask sends a frame and returns the answer to it.
export const ask = async (socket, frame) => {
  socket.send(JSON.stringify(frame));
  return until(`the answer to ${JSON.stringify(frame)}`, () =>
    socket.frames.find((f) => f.event === "phx_reply" && f.topic === frame[2] && f.ref === frame[1]));
};

// answers fails unless a frame is answered so, with its own join_ref and ref.
export const answers = async (socket, frame, status) => {
  const answer = await ask(socket, frame);
  assert.equal(answer.joinRef, frame[0]);
  assert.equal(answer.payload.status, status, JSON.stringify(answer.payload));
  return answer.payload.response;
};

const native = "/socket/websocket?vsn=2.0.0";
const endless = [started, opens, counts(100_000, 5)];

const connected = (socket) => until("the socket is connected", () => socket.isConnected());

export const s1 = async (w) => {
  const thread = w.thread();
  await w.credentials(thread, w.run(), text(waits(w.gate())));
  for (const path of ["/socket", "/socket/", "/client", "/client/"]) {
    const { joinToken } = await (await w.reconnects(thread)).json();
    await connected(w.phoenix(path, path.startsWith("/client") ? { params: { join_token: joinToken } } : {}));
  }
  assert.equal(w.sockets().length, 4, "it took one try each");
  await w.release();
};

export const s2 = async (w) => {
  const socket = await w.raw(native);
  await answers(socket, ["7", "7", `thread:${w.thread()}`, "phx_join", {}], "ok");
  const run = w.run();
  const credentials = await w.credentials(w.thread(), run, text(waits(w.gate())));
  const client = await w.raw(w.joinPath(credentials));
  await answers(client, ["3", "3", credentials.realtime.topic, "phx_join", { stream_mode: "run", run_id: run }], "ok");
  await w.release();
};

export const s3 = async (w) => {
  const credentials = await w.credentials(w.thread(), w.run(), text(waits(w.gate())));
  for (const path of [native, w.joinPath(credentials)]) {
    const socket = await w.raw(path);
    assert.deepEqual(await answers(socket, [null, "12", "phoenix", "heartbeat", {}], "ok"), {});
  }
  const socket = w.phoenix("/socket");
  await connected(socket);
  assert.equal(await new Promise((resolve) => socket.ping(resolve)) >= 0, true);
  await w.release();
};

export const s4 = async (w) => {
  const run = w.run();
  const credentials = await w.credentials(w.thread(), run, text(waits(w.gate())));
  const topics = { [native]: [`thread:${w.thread()}`, {}], [w.joinPath(credentials)]: [credentials.realtime.topic, { stream_mode: "run", run_id: run }] };
  for (const [path, [topic, payload]] of Object.entries(topics)) {
    const socket = await w.raw(path);
    await answers(socket, ["1", "1", "thread:nobody-was-here", "phx_leave", {}], "ok");
    await answers(socket, ["2", "2", topic, "phx_join", payload], "ok");
    await answers(socket, ["2", "3", topic, "phx_leave", {}], "ok");
    await answers(socket, ["2", "4", topic, "phx_leave", {}], "ok");
  }
  await w.release();
};

export const s5 = async (w) => {
  const thread = w.thread();
  const topic = `thread:${thread}`;
  const run = w.run();
  await w.credentials(thread, run, endless);
  const socket = await w.raw(native);
  await answers(socket, ["1", "1", topic, "phx_join", {}], "ok");
  await until("events come", () => socket.frames.some((f) => f.event === "ag_ui_events" && f.joinRef === "1"));
  const answer = await ask(socket, ["5", "5", topic, "phx_join", {}]);
  const at = socket.frames.indexOf(answer);
  await until("events go on", () => socket.frames.slice(at).filter((f) => f.event === "ag_ui_events").length > 20);
  const late = socket.frames.slice(at).filter((f) => f.joinRef === "1" && f.event !== "phx_close");
  assert.deepEqual(late, [], "nothing of the old membership follows");

  const phoenix = w.phoenix("/socket");
  const seen = { first: 0, second: 0 };
  const join = (name) => {
    const channel = phoenix.channel(topic, {});
    channel.on("ag_ui_events", () => (seen[name] += 1));
    channel.join();
    return until(`${name} is joined`, () => channel.state === "joined" && seen[name] > 0);
  };
  await join("first");
  await join("second");
  const before = seen.first;
  await until("the second channel goes on", () => seen.second > 20);
  assert.equal(seen.first, before);
  await w.json("POST", `/api/threads/${thread}/stop`, { runId: run });
};

export const s6 = async (w) => {
  const credentials = await w.credentials(w.thread(), w.run(), text(waits(w.gate())));
  for (const path of [native, w.joinPath(credentials)]) {
    const socket = await w.raw(path);
    for (const event of ["status", "stop_run", "anything"]) {
      const response = await answers(socket, ["1", event, `thread:${w.thread("not-joined")}`, event, {}], "error");
      assert.equal(response.reason, "unmatched topic");
    }
  }
  await w.release();
};

// What all sockets of all statements were pushed is looked at in tap.mjs; here, a member that joins anew again and again.
export const s7 = async (w) => {
  const thread = w.thread();
  const run = w.run();
  const credentials = await w.credentials(thread, run, endless);
  const socket = await w.raw(native);
  for (let ref = 1; ref <= 20; ref++) {
    await answers(socket, [String(ref), String(ref), `thread:${thread}`, "phx_join", {}], "ok");
  }
  const client = await w.raw(w.joinPath(credentials));
  await answers(client, ["9", "9", credentials.realtime.topic, "phx_join", { stream_mode: "run", run_id: run }], "ok");
  await until("events come", () => client.frames.filter((f) => f.event === "ag_ui_event").length > 5);
  assert.deepEqual([...new Set(client.frames.map((f) => f.joinRef))], ["9"]);
  await w.json("POST", `/api/threads/${thread}/stop`, { runId: run });
};

export const s9 = async (w) => {
  const run = w.run();
  const { joinToken, realtime } = await w.credentials(w.thread(), run, text(waits(w.gate())));
  const refused = [
    "/socket/websocket", "/socket/websocket?vsn=1.0.0", "/socket/websocket?vsn=3.0.0", "/socket/longpoll?vsn=2.0.0", "/socket?vsn=2.0.0",
    "/client/websocket", "/client/websocket?vsn=2.0.0", "/client/websocket?join_token=&vsn=2.0.0", "/client/websocket?join_token=nonsense&vsn=2.0.0",
    `/client/websocket?join_token=${joinToken}&vsn=1.0.0`, `/client/websocket?join_token=${joinToken}`, `/client/longpoll?join_token=${joinToken}&vsn=2.0.0`,
    "/runner/websocket?vsn=2.0.0", "/api/copilotkit/websocket?vsn=2.0.0", "/nowhere?vsn=2.0.0",
  ];
  for (const path of refused) {
    const status = await w.refusal(path);
    assert.ok(status >= 200 && status < 600, `${path} is answered ${status}`);
  }
  assert.equal(await w.refusal("/socket/websocket?vsn=2.0.0", { origin: "http://elsewhere.example" }), 403);
  assert.equal(await w.refusal(w.joinPath({ joinToken }), { origin: "http://elsewhere.example" }), 403);
  const phoenix = w.phoenix("/client", { params: { join_token: joinToken } });
  phoenix.channel(realtime.topic, { stream_mode: "run", run_id: run }).join();
  await until("it is joined", () => w.sockets(joinToken).at(-1)?.joins.get(realtime.topic)?.accepted);
  await w.release();
};

export const s11 = async (w) => {
  const { joinToken } = await w.credentials(w.thread(), w.run(), text(waits(w.gate())));
  for (const [path, params] of [["/socket", {}], ["/client", { join_token: joinToken }]]) {
    const socket = w.phoenix(path, { params, authToken: "an ASCII key" });
    await connected(socket);
    assert.equal(socket.conn.protocol, "phoenix");
  }
  await w.release();
};

export const s12 = async (w) => {
  const run = w.run();
  const credentials = await w.credentials(w.thread(), run, text(waits(w.gate()), counts(3)));
  const good = w.phoenix("/socket");
  let events = 0;
  const channel = good.channel(`thread:${w.thread()}`, {});
  channel.on("ag_ui_events", (payload) => (events += payload.events.length));
  channel.join();
  const member = await w.raw(w.joinPath(credentials));
  await answers(member, ["1", "1", credentials.realtime.topic, "phx_join", { stream_mode: "run", run_id: run }], "ok");
  const rubbish = [
    "", "no JSON", "{}", "[]", "[1,2,3]", '["1","1","t","phx_join"]', '["1","1","t","phx_join",{},7]', '["1","1",5,"phx_join",{}]',
    '["1","1",null,"phx_join",{}]', '["1","1","t",5,{}]', '[{},"1","t","e",{}]', '["1","1","t","e",[]]', '["1","1","t","e"', Buffer.from([0, 200, 1, 1, 1, 7]),
    Buffer.from([]), Buffer.from("000101030233343a", "hex"),
  ];
  for (const bad of rubbish) {
    for (const path of [native, w.joinPath(await (await w.reconnects(w.thread())).json())]) {
      const socket = await w.raw(path);
      let alive = false;
      socket.once("pong", () => (alive = true));
      socket.send(bad);
      socket.ping();
      await until("it is passed over or closed", () => alive || socket.closed);
    }
  }
  await answers(member, [null, "2", "phoenix", "heartbeat", {}], "ok");
  await w.release();
  await until("both go on", () => events >= 7 && member.frames.filter((f) => f.event === "ag_ui_event").length >= 7);
  assert.equal(tokenOf(member), credentials.joinToken);
  assert.equal(member.closed, null);
};
