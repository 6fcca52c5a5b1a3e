// The TCP connection of a page is killed at a random moment of a run, as often as asked, each time on a thread of its own.

import assert from "node:assert/strict";
import { overAnother } from "./loss.mjs";
import { counted, counts, text } from "./script.mjs";
import { tokenOf } from "./tap.mjs";
import { until } from "./world.mjs";

const words = 60;
const apart = 40; // ms
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// killed runs once, and tells how long the page was away, or null if the run was over before.
const killed = async (w, mode) => {
  const way = await overAnother(w);
  const [thread, runId] = [way.thread(), way.run()];
  const chat = await way.chat({ thread });
  let over;
  if (mode === "run") {
    over = chat.run(text(counts(words, apart)), { runId });
  } else {
    await way.credentials(thread, runId, text(counts(words, apart)));
    over = chat.connect();
  }
  await until("the page opens a socket", () => way.sockets()[0]);
  await pause(Math.random() * words * apart);
  if (Math.random() < 0.25) { // a network that has already begun to lose what it carries
    await way.desk("hold", { up: Math.random() < 0.5 });
    await pause(Math.random() * 150);
  }
  const { cut } = await way.desk("cut", { reset: Math.random() < 0.5 });
  const at = performance.now();
  await over;
  assert.equal(chat.said(runId), counted(words), `${mode} mode: the text, after a kill of ${cut}`);
  assert.equal(chat.events.filter((e) => e.type === "RUN_STARTED").length, 1);
  chat.fine();
  const later = way.sockets().flatMap((s) => s.frames).find((f) => f.at > at && f.event === "phx_reply" && f.ref === f.joinRef);
  const fresh = new Set(way.sockets().map(tokenOf)).size > 1;
  return cut > 0 && later ? { mode, ms: later.at - at, fresh } : null;
};

// kills makes n of them, so many at a time.
const kills = async (w, mode, n, atOnce) => {
  const all = [];
  const one = async () => {
    while (all.length < n) {
      const kill = await killed(w, mode);
      if (kill && all.length < n) all.push(kill);
    }
  };
  await Promise.all(Array.from({ length: Math.min(n, atOnce) }, one));
  return { kills: all };
};

export const sKillsRun = (w) => kills(w, "run", 100, 20);
export const sKillsConnect = (w) => kills(w, "connect", 100, 20);
export const sKillsFew = async (w) => ({ kills: [...(await kills(w, "run", 4, 4)).kills, ...(await kills(w, "connect", 4, 4)).kills] });
