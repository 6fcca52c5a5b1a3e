// Statements about everything that happened on the bench: they are tried last.

import assert from "node:assert/strict";
import { packages } from "./clients.mjs";
import { broken, sockets } from "./tap.mjs";

const seen = (event) => sockets.some((s) => s.frames.some((f) => f.event === event));

export const s8 = async () => {
  assert.ok(seen("ag_ui_event") && seen("stream_idle"));
  assert.deepEqual(broken.filter((b) => b.includes("the server closed thread:")), []);
};

export const s10 = async () => {
  const closes = sockets.filter((s) => s.opened && s.closed && !s.closed.here);
  assert.ok(closes.length > 0, "sockets were closed by the server or the network");
  assert.deepEqual([...new Set(closes.map((s) => s.closed.code))].filter((code) => code === 1000), []);
};

// The rules of tap.mjs, which are those of statements 7, 8, 9, 10, 19 and 20.
export const srules = async () => {
  assert.deepEqual(broken, []);
  return { measured: { sockets: sockets.length, frames: sockets.reduce((n, s) => n + s.frames.length, 0) } };
};

// What is under test: told so that it can be compared with what should be.
export const sversion = async () => ({ version: packages.phoenixVersion });
