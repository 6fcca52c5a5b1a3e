// @vitest-environment jsdom
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Connection } from "./thread/connection";
import { FakeServer } from "./thread/fakeserver";
import { ThreadList } from "./threads";

const summary = (id: string, minute: number, revision = 1, more: object = {}) => ({
  id, title: id, state: "finished", activity: new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString(), revision, ...more,
});

let server: FakeServer;
let changes: number;
let list: ThreadList;

beforeEach(async () => {
  vi.useFakeTimers();
  server = new FakeServer();
  changes = 0;
  const connection = new Connection({ transport: server.transport });
  connection.connect();
  list = new ThreadList(connection, () => changes++);
  list.start();
  await pass();
});

afterEach(() => {
  vi.clearAllTimers();
  vi.useRealTimers();
});

const pass = (ms = 50) => vi.advanceTimersByTimeAsync(ms);
const ids = () => list.threads.map((thread) => thread.id);
const joined = (threads: object[], next: string | null = null) => server.reply("phx_join", { threads, next }, "ok", "user");
const tell = (change: string, thread: object) => server.push("thread_changed", { change, thread }, "user");

describe("the list", () => {
  test("comes with the join, and asks for nothing while nothing happens", async () => {
    expect([list.loaded, server.sent("phx_join", "user")]).toEqual([false, [{ limit: 50 }]]);
    joined([summary("b", 2), summary("a", 1)]);
    await pass(600_000);
    expect([list.loaded, ids(), changes, server.sent("list", "user")]).toEqual([true, ["b", "a"], 1, []]);
  });

  test("follows what changes", () => {
    joined([summary("b", 2), summary("a", 1)]);
    tell("created", summary("c", 3, 1, { state: "running" }));
    expect(ids()).toEqual(["c", "b", "a"]);
    tell("ended", summary("c", 4, 2));
    tell("running", summary("a", 5, 2, { state: "running" }));
    tell("renamed", summary("b", 2, 2, { name: "Mine" }));
    expect(list.threads.map((thread) => [thread.id, thread.state, thread.title])).toEqual([
      ["a", "running", "a"], ["c", "finished", "c"], ["b", "finished", "Mine"],
    ]);
    tell("archived", summary("b", 2, 3, { archived: true }));
    tell("deleted", { id: "a", revision: 3 });
    expect(ids()).toEqual(["c"]);
    tell("unarchived", summary("b", 2, 4));
    expect(ids()).toEqual(["c", "b"]);
  });

  test("does not take what is older than what it has", () => {
    joined([summary("a", 2, 5)]);
    tell("renamed", summary("a", 1, 4, { name: "before" }));
    tell("deleted", { id: "a", revision: 7 });
    tell("ended", summary("a", 3, 6));
    expect([ids(), changes]).toEqual([[], 2]);
    tell("created", summary("a", 9, 8));
    expect(ids()).toEqual(["a"]);
  });

  test("leaves threads of pages that it does not hold where they are", () => {
    joined([summary("d", 4), summary("c", 3)], "p2");
    tell("renamed", summary("a", 1, 2, { name: "old" }));
    expect(ids()).toEqual(["d", "c"]);
    tell("running", summary("a", 5, 3));
    expect(ids()).toEqual(["a", "d", "c"]);
  });

  test("holds older pages while the first one is read anew", async () => {
    joined([summary("d", 4), summary("c", 3)], "p2");
    const more = list.showMore();
    await pass();
    server.reply("list", { threads: [summary("b", 2), summary("a", 1)], next: null }, "ok", "user");
    await more;
    expect([ids(), list.next, server.sent("list", "user")]).toEqual([["d", "c", "b", "a"], null, [{ limit: 50, before: "p2" }]]);
    server.push("threads_reset", {}, "user");
    await pass();
    server.reply("list", { threads: [summary("e", 5), summary("d", 4)], next: "p2" }, "ok", "user");
    await pass();
    expect([ids(), list.next]).toEqual([["e", "d", "c", "b", "a"], null]);
  });

  test("comes anew after the socket was gone", async () => {
    joined([summary("b", 2), summary("a", 1)]);
    server.socket.drop();
    await pass(20_000);
    expect(server.sent("phx_join", "user").length).toBeGreaterThan(1);
    joined([summary("a", 1)]);
    expect(ids()).toEqual(["a"]);
  });

  test("keeps what it had when the server does not answer, and says so", async () => {
    joined([summary("a", 1)]);
    server.push("threads_reset", {}, "user");
    await pass();
    server.reply("list", { code: "unavailable" }, "error", "user");
    await pass();
    expect([list.failed, ids()]).toEqual([true, ["a"]]);
  });

  test("says so when it cannot be joined", async () => {
    server.reply("phx_join", { code: "unavailable" }, "error", "user");
    await pass();
    expect([list.failed, list.loaded]).toEqual([true, true]);
  });
});
