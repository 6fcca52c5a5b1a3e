import { useEffect, useMemo, useState } from "preact/hooks";
import { highlight } from "../markdown/highlight";
import { MarkdownStream, type Block } from "../markdown/blocks";
import { memo } from "./memo";
import { CopyButton } from "./copy";

const longest = 200_000; // UTF-16 units that are read as Markdown; reading more would make the page stand still

/** Markdown, sanitised and drawn block by block, so that what is complete stays as it is while the end grows. */
export function Markdown({ text, done }: { text: string; done: boolean }) {
  const stream = useMemo(() => new MarkdownStream(), []);
  if (text.length > longest) return <Plain text={text} />;
  const blocks = stream.blocks(text, done);
  return (
    <div class={done ? "markdown" : "markdown writing"}>
      {blocks.map((block, i) => (
        <BlockView key={i} block={block} />
      ))}
    </div>
  );
}

/** A text too long for Markdown, in pieces, so that the browser lays out only those that are seen. */
function Plain({ text }: { text: string }) {
  return (
    <div class="markdown plain">
      {text.match(/[^]{1,4000}/gu)?.map((piece, i) => <div key={i}>{piece}</div>)}
    </div>
  );
}

function sameBlock(a: Block, b: Block): boolean {
  if (a.kind === "html") return b.kind === "html" && a.html === b.html;
  return b.kind === "code" && a.text === b.text && a.language === b.language && a.closed === b.closed;
}

const BlockView = memo<{ block: Block }>(
  ({ block }) =>
    block.kind === "code" ? (
      <CodeBlock language={block.language} text={block.text} closed={block.closed} />
    ) : (
      <div class="block" dangerouslySetInnerHTML={{ __html: block.html }} />
    ),
  (before, after) => sameBlock(before.block, after.block),
);

function CodeBlock({ language, text, closed }: { language: string; text: string; closed: boolean }) {
  const [marked, setMarked] = useState<{ text: string; html: string }>();
  useEffect(() => {
    if (!closed || language === "") return;
    let wanted = true;
    highlight(text, language).then(
      (html) => wanted && html !== undefined && setMarked({ text, html }),
      () => undefined, // without the highlighter the code is plain, and still right
    );
    return () => {
      wanted = false;
    };
  }, [text, language, closed]);
  const shown = marked?.text === text ? marked.html : undefined;
  return (
    <div class="code block">
      <div class="code-head">
        <span>{language || "text"}</span>
        <CopyButton text={() => text} label="Copy code" />
      </div>
      <pre tabIndex={0}>
        {shown === undefined ? <code>{text}</code> : <code dangerouslySetInnerHTML={{ __html: shown }} />}
      </pre>
    </div>
  );
}
