// @vitest-environment jsdom
import { describe, expect, test } from "vitest";
import { MarkdownStream, mend, type Block } from "./blocks";

function html(text: string, done = true): string {
  return new MarkdownStream()
    .blocks(text, done)
    .map((block) => (block.kind === "html" ? block.html : `[${block.language}]${block.text}`))
    .join("");
}

describe("what an answer may not do", () => {
  test.each([
    ["a script stays text", "<script>alert(1)</script>", /<script/],
    ["an inline handler stays text", 'hi <img src=x onerror="alert(1)">', /<img/],
    ["a javascript link loses its address", "[x](javascript:alert(1))", /href/],
    ["a data link loses its address", "[x](data:text/html,hi)", /href/],
    ["a link relative to the server loses its address", "[x](/api/threads)", /href/],
    ["an image is not fetched", "![a](https://example.com/a.png)", /<img/],
    ["a form stays text", '<form action="https://example.com"><input></form>', /<form|<input/],
  ])("%s", (_, source, forbidden) => {
    expect(html(source)).not.toMatch(forbidden);
  });

  test("an image becomes a link to it", () => {
    expect(html("![a cat](https://example.com/cat.png)")).toContain('href="https://example.com/cat.png"');
  });

  test("a link opens elsewhere and tells the other side nothing", () => {
    expect(html("[x](https://example.com)")).toMatch(/target="_blank" rel="noopener noreferrer nofollow"/);
  });
});

describe("what an answer may hold", () => {
  test("numbers keep to the right of a table", () => {
    expect(html("| a |\n|--:|\n| 1 |")).toContain('<td align="right">1</td>');
  });

  test("a numbered list may begin anywhere", () => {
    expect(html("3. three")).toContain('<ol start="3">');
  });

  test("code is a block of its own", () => {
    expect(html("a\n\n```go\nx := 1\n```\n\nb")).toBe("<p>a</p>\n[go]x := 1<p>b</p>\n");
  });
});

/** The text as it grows piece by piece, and the blocks at each point. */
function grow(source: string, size: number): Block[][] {
  const stream = new MarkdownStream();
  const states: Block[][] = [];
  for (let end = size; end < source.length + size; end += size) states.push(stream.blocks(source.slice(0, end), false));
  return states;
}

const sample = [
  "# Title",
  "A paragraph with **bold**, *italic*, `code` and a [link](https://example.com).",
  "- one\n- two\n  - nested\n- three",
  "```js\nconst a = `**not bold**`;\n\nlet b;\n```",
  "| a | b |\n|---|--:|\n| 1 | 2 |",
  "> quoted\n> twice",
  "The end 😀.",
].join("\n\n");

describe("while it grows", () => {
  test.each([1, 3, 7, 50])("pieces of %i characters end in the same blocks as the whole", (size) => {
    const last = grow(sample, size).at(-1)!;
    const whole = new MarkdownStream().blocks(sample, true);
    expect(last.map((block) => ({ ...block, closed: true }))).toEqual(whole.map((block) => ({ ...block, closed: true })));
  });

  test("a block that was complete is not made again", () => {
    const states = grow(sample, 1);
    const first = states.find((blocks) => blocks.length >= 4)![0];
    expect(states.at(-1)![0]).toBe(first);
  });

  test("a list that goes on after an empty line stays one list", () => {
    const stream = new MarkdownStream();
    stream.blocks("intro\n\n- a\n\n", false);
    expect(stream.blocks("intro\n\n- a\n\n- b", false)).toHaveLength(2);
  });

  test("a code block is closed only when more follows, or at the end", () => {
    const stream = new MarkdownStream();
    expect(stream.blocks("```go\nx", false)).toMatchObject([{ kind: "code", closed: false }]);
    expect(stream.blocks("```go\nx\n```\n\nand", false)).toMatchObject([{ closed: true }, { kind: "html" }]);
    expect(stream.blocks("```go\nx\n```", true)).toMatchObject([{ closed: true }]);
  });

  test("a text that turns out different is read anew", () => {
    const stream = new MarkdownStream();
    stream.blocks("one\n\ntwo\n\nthree", false);
    expect(stream.blocks("other", false)).toMatchObject([{ html: "<p>other</p>\n" }]);
  });
});

test.each([
  ["bold that is open is closed", "so **bo", "so **bo**"],
  ["bold that has only begun is left out", "so **", "so "],
  ["bold that is half closed is closed", "so **bold*", "so **bold**"],
  ["a bullet is not taken for emphasis", "* so **bo", "* so **bo**"],
  ["a code span that is open is closed", "so `co", "so `co`"],
  ["a link shows its text until it is complete", "so [li", "so li"],
  ["a link shows its text while its address comes", "so [link](https://ex", "so link"],
  ["a complete link is kept", "so [link](https://example.com)", "so [link](https://example.com)"],
  ["an open code block is left alone", "```\na **b", "```\na **b"],
  ["what is complete is left alone", "**a** `b` c", "**a** `b` c"],
])("%s", (_, source, mended) => {
  expect(mend(source)).toBe(mended);
});
