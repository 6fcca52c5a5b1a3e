// The reference client as a judge of captures:
//
//   node reference-client.mjs DIRECTORY
//
// Each file of the directory is a capture: {name, initial?, events, messages, state, pending}. Its events go through the
// unmodified pipeline of @ag-ui/client (compatibility boundary, enforcement, chunk expansion, verification, reducer), which
// must accept them, and come to the messages, the state and the pending interrupts that the capture has. Those may hold what
// the reference takes out of events, so that they go through the same pipeline as snapshots before they are compared.

import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { AbstractAgent } from "@ag-ui/client";
import { from } from "rxjs";
import { fail, report } from "./report.mjs";

for (const method of ["log", "warn", "error", "debug"]) {
  if (method !== "log") console[method] = () => {}; // the reference tells of each member that it takes out
}

class Replay extends AbstractAgent {
  constructor(events, initial = {}) {
    super({ threadId: "t", initialMessages: initial.messages, initialState: initial.state });
    this.events = events;
  }
  connect() {
    return from(this.events);
  }
  run() {
    throw new Error("a capture is only connected to");
  }
}

// play returns what the reference makes of events.
const play = async (events, initial) => {
  const agent = new Replay(events, initial);
  await agent.connectAgent({});
  const { messages, state, pendingInterrupts: pending } = agent;
  return { messages, state, pending };
};

const bounds = { threadId: "t", runId: "r" };
const started = { type: "RUN_STARTED", ...bounds };
const finished = { type: "RUN_FINISHED", ...bounds };

// enforced returns messages, state and interrupts as they are when the reference has taken out what it does not know.
const enforced = async ({ messages, state, pending }) => {
  const outcome = pending.length > 0 ? { outcome: { type: "interrupt", interrupts: pending } } : {};
  return play([
    started,
    { type: "MESSAGES_SNAPSHOT", messages },
    { type: "STATE_SNAPSHOT", snapshot: state },
    { ...finished, ...outcome },
  ]);
};

const judge = async (capture) => {
  const got = await play(capture.events, capture.initial);
  const want = await enforced(capture);
  return ["messages", "state", "pending"]
    .filter((what) => !isDeepStrictEqual(got[what], want[what]))
    .map((what) => `${what}: the reference has ${JSON.stringify(got[what])?.slice(0, 2000)}, and we have ${JSON.stringify(want[what])?.slice(0, 2000)}`);
};

const directory = process.argv[2];
let n = 0;
let events = 0;
for (const file of (await readdir(directory)).sort()) {
  const capture = JSON.parse(await readFile(join(directory, file), "utf8"));
  if (!Array.isArray(capture.events) || capture.events.length === 0) fail(`${file} has no events`);
  let why;
  try {
    why = await judge(capture);
  } catch (error) {
    why = [`refused: ${error?.message ?? error}`];
  }
  n += 1;
  events += capture.events.length;
  if (why.length > 0) report("differs", { name: capture.name, why: why.join("\n") });
}
report("judged", { n, events });
