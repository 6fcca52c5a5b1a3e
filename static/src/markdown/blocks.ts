import DOMPurify from "dompurify";
import { Marked, type Token, type Tokens } from "marked";

/** One top-level piece of a Markdown text, ready to be drawn. */
export type Block = { kind: "html"; html: string } | { kind: "code"; language: string; text: string; closed: boolean };

const marked = new Marked({
  gfm: true,
  breaks: false,
  renderer: {
    // Raw HTML is shown as the text it is.
    html: (token) => ("block" in token && token.block ? `<p>${escape(token.text)}</p>` : escape(token.text)),
    // Images are not fetched: an address in an answer can carry what was said in the thread to somebody else.
    image: ({ href, text }) => `<a href="${escape(href)}">${escape(text || href)}</a>`,
    checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
  },
});

const purify = DOMPurify(window);
purify.addHook("afterSanitizeAttributes", (node) => {
  if (node.nodeName !== "A") return;
  node.setAttribute("target", "_blank");
  node.setAttribute("rel", "noopener noreferrer nofollow");
});

const allowed = {
  ALLOWED_TAGS: [
    "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre",
    "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
  ],
  ALLOWED_ATTR: ["href", "title", "start", "align"],
  ADD_URI_SAFE_ATTR: ["start", "align"], // what is no address need not look like one
  ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|tel:)/i,
};

/**
 * Turns a growing Markdown text into blocks. While text is appended, only its end is read again: the last two blocks.
 */
export class MarkdownStream {
  private source = "";
  private finished = false;
  private settled: Block[] = [];
  private settledLength = 0; // of the source, in UTF-16 units
  private tail: Block[] = [];

  /** The blocks of the text; done says that nothing will be appended to it any more. */
  blocks(text: string, done: boolean): Block[] {
    if (text === this.source && done === this.finished) return [...this.settled, ...this.tail];
    const grows = !done && text.startsWith(this.source);
    if (!grows) {
      this.settled = [];
      this.settledLength = 0;
    }
    this.source = text;
    this.finished = done;
    this.read(text.slice(this.settledLength), done);
    return [...this.settled, ...this.tail];
  }

  private read(rest: string, done: boolean): void {
    const tokens = marked.lexer(done ? rest : mend(rest));
    const open = done ? 0 : openFrom(tokens);
    for (const token of tokens.slice(0, open)) {
      this.settledLength += token.raw.length;
      if (token.type !== "space") this.settled.push(render(token, true));
    }
    const tail = tokens.slice(open).filter((token) => token.type !== "space" && token.type !== "def");
    this.tail = tail.map((token, i) => render(token, done || i < tail.length - 1));
  }
}

/** The index of the first token that more text could still change. A list may go on after an empty line. */
function openFrom(tokens: Token[]): number {
  let blocks = 0;
  for (let i = tokens.length - 1; i >= 0; i--) {
    if (tokens[i]!.type !== "space" && ++blocks === 2) return i;
  }
  return 0;
}

function render(token: Token, closed: boolean): Block {
  if (token.type === "code") {
    const code = token as Tokens.Code;
    return { kind: "code", language: (code.lang ?? "").split(/\s/)[0]!, text: code.text, closed };
  }
  const html = marked.parser([token]);
  return { kind: "html", html: purify.sanitize(html, allowed) };
}

/**
 * Closes emphasis, code spans and links that the end of the text has only begun, so that their marks do not flash up
 * as text. Lines inside a code block that is still open are left alone.
 */
export function mend(text: string): string {
  const fences = text.match(/^ {0,3}(```|~~~)/gm);
  if (fences && fences.length % 2 === 1) return text;
  const line = text.slice(text.lastIndexOf("\n") + 1);
  const spans = line.match(/`+/g);
  if (spans && spans.length % 2 === 1) return line.endsWith("`") ? text.replace(/`+$/, "") : text + spans.at(-1)!;
  const link = /\[([^\]]*)(\]\([^)\s]*)?$/.exec(line);
  const open = link && !line.endsWith("]") ? text.slice(0, text.length - link[0].length) + link[1]! : text;
  return closeEmphasis(open);
}

function closeEmphasis(text: string): string {
  const line = text.slice(text.lastIndexOf("\n") + 1).replace(/^\s*[*+-]\s/, "");
  const bold = line.replace(/`[^`]*`/g, "").match(/\*\*/g)?.length ?? 0;
  if (bold % 2 === 0) return text;
  if (/\*\*$/.test(text)) return text.slice(0, -2);
  if (/\*$/.test(text)) return `${text}*`;
  return `${text.replace(/\s+$/, "")}**`;
}

function escape(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}
