// Statements 41 to 45: the list of threads.

import assert from "node:assert/strict";
import { packages } from "./clients.mjs";
import { counts, text } from "./script.mjs";
import { until } from "./world.mjs";

// store is a list of threads as a page has it.
const store = async (w, { user = w.user, ...context } = {}) => {
  const store = packages.core.ɵcreateThreadStore({ fetch: globalThis.fetch });
  const before = w.sockets();
  const activity = [];
  w.open.push(() => store.stop());
  store.start();
  store.subscribeToRunActivity((a) => activity.push(a));
  store.setContext({
    runtimeUrl: w.runtime, headers: { "X-User": user }, wsUrl: `${w.url.replace("http", "ws")}/client`, agentId: "default", ...context,
  });
  const state = () => store.getState();
  await until("the list is there", () => !state().isLoading);
  assert.equal(state().error, null);
  const topic = `user_meta:${state().metadataJoinCode}`;
  const socket = await until("the list is live", () => w.sockets().find((s) => !before.includes(s) && s.joins.get(topic)?.accepted));
  return {
    store, activity, socket, topic, state,
    ids: () => state().threads.map((t) => t.id),
    row: (id) => state().threads.find((t) => t.id === id),
    pushed: () => socket.frames.filter((f) => f.topic === topic && f.event !== "phx_reply"),
  };
};

// talk has a run happen on a thread of a user, and waits until it is over.
const talk = async (w, thread, user = w.user) => {
  const mine = Object.assign(Object.create(w), { user });
  const runId = w.run();
  await mine.credentials(thread, runId, text(counts(2)));
  await mine.idle(thread);
  return runId;
};

const listed = async (w, more = "") => (await w.json("GET", `/api/copilotkit/threads?agentId=default${more}`)).threads;

export const s41 = async (w) => {
  const threads = ["a", "b", "c", "d", "e"].map((name) => w.thread(name));
  for (const thread of threads) await talk(w, thread);
  const [a, b, c, d, e] = threads;
  const page = await store(w, { limit: 3 });
  assert.deepEqual(page.ids(), [e, d, c]);
  page.store.fetchNextPage();
  await until("page 2", () => page.ids().length === 5);
  assert.deepEqual(page.ids(), [e, d, c, b, a]);
  assert.equal(page.state().nextCursor, null);

  const all = await store(w, { includeArchived: true });
  const agree = async (what, as) => {
    await until(`${what}: pushed to who is there`, () => as(page) && as(all), 5000).catch((error) => {
      const told = page.pushed().map((f) => JSON.stringify(f.payload)).join("\n");
      throw new Error(`${error.message}\n${JSON.stringify(page.state().threads)}\n${told}`);
    });
    const fresh = await listed(w);
    assert.deepEqual(fresh.map((t) => t.id), page.ids(), what);
    assert.deepEqual(fresh, page.state().threads, what);
    assert.deepEqual(await listed(w, "&includeArchived=true"), all.state().threads, what);
  };
  const f = w.thread("f");
  await talk(w, f);
  await agree("create", ({ row, ids }) => ids()[0] === f && row(f).lastRunAt && row(f).updatedAt);
  await page.store.renameThread(b, "Bé");
  await agree("rename", ({ row }) => row(b).name === "Bé");
  await page.store.archiveThread(c);
  await until("archived rows are shown where they are asked for", () => all.row(c)?.archived);
  await agree("archive", () => !page.row(c));
  await all.store.unarchiveThread(c);
  await agree("unarchive", ({ row }) => row(c)?.archived === false);
  await page.store.deleteThread(d);
  await agree("delete", ({ row }) => !row(d));
  assert.equal((await w.reconnects(d)).status, 204);
  const operations = new Set(all.pushed().filter((p) => p.event === "thread_metadata").map((p) => p.payload.operation));
  for (const operation of ["created", "renamed", "archived", "unarchived", "deleted"]) assert.ok(operations.has(operation), `${operation} of ${[...operations]}`);
  for (const time of ["createdAt", "updatedAt", "lastRunAt"]) assert.match(page.row(a)[time], /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/);
};

export const s42 = async (w) => {
  const thread = w.thread();
  await talk(w, thread);
  const page = await store(w);
  for (let i = 1; i <= 3; i++) {
    const before = w.sockets().length;
    await w.desk("cut", { reset: i % 2 === 0 });
    await until("it is joined again", () => w.sockets().length > before && w.sockets().at(-1).joins.get(page.topic)?.accepted);
    await w.json("PATCH", `/api/copilotkit/threads/${thread}`, { agentId: "default", name: `name ${i}` });
    await until("the change comes", () => page.row(thread).name === `name ${i}`);
  }
  assert.equal(new Set(w.sockets().map((s) => s.url)).size, 1, "the token is the same");
};

// The stores are away, which the Go side sees to: what is asked of them fails. The list was fetched before.
export const s43 = async (w) => {
  const thread = w.thread();
  await talk(w, thread);
  const page = await store(w);
  const row = page.row(thread);
  await w.desk("stores", { up: false });
  const deleting = page.store.deleteThread(thread);
  assert.deepEqual(page.ids(), [], "the row is gone at once");
  await assert.rejects(deleting, /Request failed: 50\d/);
  assert.deepEqual(page.row(thread), row);
  await w.desk("stores", { up: true });
  assert.deepEqual((await listed(w)).map((t) => t.id), [thread]);
};

export const s44 = async (w) => {
  const [one, two] = [w.thread("one"), w.thread("two")];
  await talk(w, one);
  const page = await store(w);
  const runs = [];
  for (const thread of [one, two, one]) runs.push([thread, await talk(w, thread)]);
  const told = () => page.activity.filter((a) => runs.some(([, run]) => run === a.runId)); // the end of one before may be told late
  await until("all is told", () => told().length >= 6);
  await w.json("PATCH", `/api/copilotkit/threads/${one}`, { agentId: "default", name: "the last change" });
  await until("the last change is told", () => page.row(one).name === "the last change");
  const got = told().map((a) => [a.threadId, a.runId, a.eventType, a.agentId]);
  assert.deepEqual(got, runs.flatMap(([thread, run]) => [[thread, run, "RUN_STARTED", "default"], [thread, run, "RUN_FINISHED", "default"]]));
};

export const s45 = async (w) => {
  const users = ["ann", "bob"].map((name) => `${name}-${w.tag}`);
  const threads = users.map((user) => w.thread(`of ${user}`));
  await Promise.all(users.map((user, i) => talk(w, threads[i], user)));
  const pages = [await store(w, { user: users[0] }), await store(w, { user: users[1] })];
  assert.deepEqual(pages.map((p) => p.ids()), threads.map((t) => [t]));
  for (let n = 0; n < 5; n++) {
    for (const [i, user] of users.entries()) {
      const mine = Object.assign(Object.create(w), { user });
      await talk(w, threads[i], user);
      await mine.json("PATCH", `/api/copilotkit/threads/${threads[i]}`, { agentId: "default", name: `${user} ${n}` });
    }
  }
  for (const [i, page] of pages.entries()) {
    await until("the last change is told", () => page.row(threads[i])?.name === `${users[i]} 4`);
    for (const { payload } of page.pushed()) {
      assert.equal(payload.threadId, threads[i]);
      assert.ok(payload.userId === undefined || payload.userId === users[i]);
    }
  }
  // With the token of one, the topic of the other tells of the threads of the one, or nothing.
  const token = new URL(pages[0].socket.url).searchParams.get("join_token");
  const stranger = w.phoenix("/client", { params: { join_token: token } }).channel(pages[1].topic, {});
  const heard = new Set();
  for (const event of ["thread_metadata", "thread_run_activity"]) stranger.on(event, (payload) => heard.add(payload.threadId));
  await new Promise((resolve) => {
    const join = stranger.join();
    for (const status of ["ok", "error"]) join.receive(status, resolve);
  });
  for (const [i, user] of [...users.entries()].reverse()) {
    const mine = Object.assign(Object.create(w), { user });
    await mine.json("PATCH", `/api/copilotkit/threads/${threads[i]}`, { agentId: "default", name: "at last" });
    await until("the last change is told", () => pages[i].row(threads[i]).name === "at last");
  }
  assert.ok(!heard.has(threads[1]), "a stranger heard of it");
};
