// @vitest-environment jsdom
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { ThreadSummary } from "./api";
import { ThreadList } from "./threads";

const summary = (id: string, minute: number): ThreadSummary => ({
  id, title: id, state: "finished", activity: new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString(),
});

let pages: Record<string, unknown>;
let asked: string[];
let changes: number;
let list: ThreadList;

beforeEach(() => {
  vi.useFakeTimers();
  asked = [];
  changes = 0;
  vi.stubGlobal("fetch", async (path: string) => {
    asked.push(path);
    const before = new URL(path, "http://x").searchParams.get("before") ?? "";
    const page = pages[before];
    return { ok: page !== undefined, status: page ? 200 : 503, json: async () => structuredClone(page) };
  });
  list = new ThreadList(() => changes++);
});

afterEach(() => {
  vi.clearAllTimers();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const ids = () => list.threads.map((thread) => thread.id);

describe("the list", () => {
  test("is asked for every five seconds, and tells only what changed", async () => {
    pages = { "": { threads: [summary("a", 1)], next: null } };
    void list.refresh();
    await vi.advanceTimersByTimeAsync(11_000);
    expect([asked.length, changes, ids()]).toEqual([3, 1, ["a"]]);
    pages = { "": { threads: [summary("b", 2), summary("a", 1)], next: null } };
    await vi.advanceTimersByTimeAsync(5_000);
    expect([changes, ids()]).toEqual([2, ["b", "a"]]);
  });

  test("rests while nobody looks, and is fresh when somebody does", async () => {
    pages = { "": { threads: [], next: null } };
    const visibility = vi.spyOn(document, "visibilityState", "get").mockReturnValue("hidden");
    list.start();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(asked).toHaveLength(1);
    visibility.mockReturnValue("visible");
    document.dispatchEvent(new Event("visibilitychange"));
    await vi.advanceTimersByTimeAsync(0);
    expect(asked).toHaveLength(2);
    visibility.mockRestore();
  });

  test("keeps what it had when the server does not answer, and says so", async () => {
    pages = { "": { threads: [summary("a", 1)], next: null } };
    await list.refresh();
    pages = {};
    await list.refresh();
    expect([list.failed, ids()]).toEqual([true, ["a"]]);
  });

  test("holds older pages while the first one is polled", async () => {
    pages = {
      "": { threads: [summary("d", 4), summary("c", 3)], next: "p2" },
      p2: { threads: [summary("b", 2), summary("a", 1)], next: null },
    };
    await list.refresh();
    await list.showMore();
    expect([ids(), list.next]).toEqual([["d", "c", "b", "a"], null]);
    pages[""] = { threads: [summary("e", 5), summary("d", 4)], next: "p2" };
    await list.refresh();
    expect(ids()).toEqual(["e", "d", "c", "b", "a"]);
    expect(list.next).toBeNull();
  });

  test("drops a thread that was deleted elsewhere", async () => {
    pages = { "": { threads: [summary("b", 2), summary("a", 1)], next: null } };
    await list.refresh();
    pages = { "": { threads: [summary("a", 1)], next: null } };
    await list.refresh();
    expect(ids()).toEqual(["a"]);
  });
});
