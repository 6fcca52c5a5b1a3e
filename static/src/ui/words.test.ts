// @vitest-environment jsdom
// Small functions that decide what is said.
import { describe, expect, test } from "vitest";
import { newId } from "../id";
import { explain } from "../wire";
import { Speech } from "./announcer";
import { summary } from "./folds";
import { toPayload } from "./interrupts";
import { pretty } from "./json";
import { linkLabel, stateLabel } from "./labels";
import { since } from "./since";
import { hasState } from "./statepanel";

describe("speech", () => {
  test("says whole sentences, each once, and not too often", () => {
    const speech = new Speech();
    expect(speech.next("a", "One. Two", false, 10_000)).toBe("One.");
    expect(speech.next("a", "One. Two. Three", false, 10_500)).toBe("");
    expect(speech.next("a", "One. Two. Three", false, 13_000)).toBe("Two.");
    expect(speech.next("a", "One. Two. Three", true, 13_100)).toBe("Three");
    expect(speech.next("a", "One. Two. Three", true, 20_000)).toBe("");
  });

  test("begins anew with another message", () => {
    const speech = new Speech();
    speech.next("a", "One.", true, 10_000);
    expect(speech.next("b", "Other.", true, 10_100)).toBe("Other.");
  });

  test("leaves out what was there before, and the marks of Markdown", () => {
    const speech = new Speech();
    speech.skip("a", 5);
    expect(speech.next("a", "Old. **New** `code`.", true, 10_000)).toBe("New code.");
  });
});

test.each([
  ['{"city":"Lisbon","days":2}', "Lisbon, 2"],
  ['{"city":"Lis', '{"city":"Lis'],
  ["[1,2]", "[1,2]"],
  ["", ""],
  [JSON.stringify({ text: "x".repeat(200) }), `${"x".repeat(80)}…`],
])("the arguments %s in a line are %s", (args, line) => {
  expect(summary(args)).toBe(line);
});

test.each([
  ["yes", undefined, "yes"],
  ['{"a":1}', undefined, { a: 1 }],
  ["12", { type: "string" }, "12"],
  ["12", { type: "number" }, 12],
  ["Ada", { type: "object", properties: { name: { type: "string" } } }, { name: "Ada" }],
  ["Ada", { type: "object", properties: { first: {}, last: {} } }, "Ada"],
])("typing %s for the schema %j gives %j", (typed, schema, payload) => {
  expect(toPayload(typed, schema)).toEqual(payload);
});

test.each([
  [null, false],
  [{}, false],
  [[], false],
  ["", false],
  [{ a: null }, true],
  [0, true],
  [false, true],
])("the state %j is worth showing: %s", (state, worth) => {
  expect(hasState(state)).toBe(worth);
});

test("text that is JSON is set out, other text is left", () => {
  expect(pretty('{"a":1}')).toBe('{\n  "a": 1\n}');
  expect(pretty("a: 1")).toBe("a: 1");
});

test.each([
  ["2026-01-10T11:59:30Z", "now"],
  ["2026-01-10T11:15:00Z", "45 min"],
  ["2026-01-10T09:00:00Z", "3 h"],
  ["2026-01-08T12:00:00Z", "2 d"],
  ["2026-01-10T12:05:00Z", "now"], // clocks differ
  ["no time", ""],
])("%s was %s ago", (time, words) => {
  expect(since(time, Date.parse("2026-01-10T12:00:00Z"))).toBe(words);
});

test("states and links have words", () => {
  expect(stateLabel("waiting")).toBe("waiting for you");
  expect(stateLabel("of a later version" as never)).toBe("of a later version");
  expect([linkLabel("reconnecting", false), linkLabel("reconnecting", true), linkLabel("offline", true)])
    .toEqual(["connecting…", "reconnecting…", "offline"]);
});

test.each([
  [{ code: "thread_busy", message: "x" }, /Another run/],
  [{ code: "bad_input", message: "messages is missing" }, /^messages is missing$/],
  [{ reason: "unmatched topic" }, /^unmatched topic$/],
  [undefined, /did not say why/],
])("the error %j is explained", (error, words) => {
  expect(explain(error)).toMatch(words);
});

describe("ids", () => {
  const pattern = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

  test("are UUIDs, also where the browser makes none", () => {
    expect(newId()).toMatch(pattern);
    const own = Object.getOwnPropertyDescriptor(crypto, "randomUUID");
    Object.defineProperty(crypto, "randomUUID", { value: undefined, configurable: true });
    try {
      expect(newId()).toMatch(pattern);
      expect(newId()).not.toBe(newId());
    } finally {
      if (own) Object.defineProperty(crypto, "randomUUID", own);
      else delete (crypto as { randomUUID?: unknown }).randomUUID;
    }
  });
});
