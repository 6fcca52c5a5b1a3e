// A viewer made of the unmodified phoenix package, with ws as its transport:
//
//   node phoenix-client.mjs PACKAGE HTTP-URL THREAD
//
// It starts a run and follows it, losing its TCP connection three times on the way; phoenix connects again and resumes
// with the last cursor. Then it starts a run without end and stops it. Then it waits: whatever comes is reported, and so is
// every close of its socket, until the run called "last" has ended.

import WebSocket from "ws";
import { fail, report } from "./report.mjs";

const [packageName, url, thread] = process.argv.slice(2);
const { Socket } = await import(packageName);

const socket = new Socket(url.replace("http", "ws") + "/socket", { transport: WebSocket });
socket.onClose((event) => report("closed", { code: event.code }));
socket.connect();

let cursor = null;
const seen = []; // {runId, event}, in order
const watchers = new Set();
const channel = socket.channel(`thread:${thread}`, () => (cursor === null ? { replay: "raw" } : { replay: "raw", after: cursor }));

channel.on("ag_ui_events", ({ runId, from, to, events }) => {
  const [run, seq] = from.split("-");
  const goesOn = from === cursor || (seq === "0" && (cursor === null || Number(run) > Number(cursor.split("-")[0])));
  if (!goesOn) fail(`at ${cursor} came a frame from ${from} to ${to}`);
  cursor = to;
  for (const event of events) seen.push({ runId, event });
  for (const look of [...watchers]) look();
});
channel.on("reset", (payload) => fail(`reset ${JSON.stringify(payload)}`));
channel.onError((reason) => report("errored", { reason: String(reason) }));
channel.onClose(() => report("left"));

// when resolves as soon as what was seen is as wanted.
const when = (wanted) =>
  new Promise((resolve) => {
    const look = () => {
      if (!wanted()) return;
      watchers.delete(look);
      resolve();
    };
    watchers.add(look);
    look();
  });

const push = (event, payload) =>
  new Promise((resolve, reject) => {
    channel
      .push(event, payload)
      .receive("ok", resolve)
      .receive("error", (problem) => reject(new Error(`${event}: ${JSON.stringify(problem)}`)))
      .receive("timeout", () => reject(new Error(`${event}: timeout`)));
  });

const terminal = (event) => event.type === "RUN_FINISHED" || event.type === "RUN_ERROR";
const ended = (runId) => () => seen.some((s) => s.runId === runId && terminal(s.event));
const count = (runId) => seen.filter((s) => s.runId === runId).length;

// phoenix calls this for the first join and for every one after it.
let joins = 0;
channel
  .join()
  .receive("ok", (reply) => report("joined", { n: ++joins, resumed: reply.resumed, cursor: reply.cursor }))
  .receive("error", (problem) => fail(`join: ${JSON.stringify(problem)}`));

const first = await push("run", { runId: "first", agentId: "finite", messages: [] });
for (const n of [50, 150, 250]) {
  await when(() => count("first") >= n || ended("first")());
  socket.conn._socket.resetAndDestroy();
}
await when(ended("first"));
report("first", { cursor: first.cursor });

await push("run", { runId: "second", agentId: "endless", messages: [] });
await when(() => count("second") >= 10);
const stopped = await push("stop", { runId: "second" });
await when(ended("second"));
report("second", { stopped, cursor });

await when(ended("last"));
report("last", { seen });
socket.disconnect(() => process.exit(0));
