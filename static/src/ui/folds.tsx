import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { plainText, type Message, type ToolCall } from "../agui/events";
import type { Conversation } from "../agui/conversation";
import { Icon, type IconName } from "./icons";
import { pretty } from "./json";
import { Markdown } from "./markdown";

interface FoldProps {
  icon: IconName;
  title: ComponentChildren;
  detail?: string;
  status?: string;
  busy?: boolean;
  kind: string;
  children: () => ComponentChildren;
}

/** A line that opens to show more. What is inside is drawn only while it is open. */
export function Fold({ icon, title, detail, status, busy, kind, children }: FoldProps) {
  const [open, setOpen] = useState(false);
  return (
    <details class={busy ? "fold busy" : "fold"} data-testid={kind} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <Icon name={icon} size={16} />
        <span class="fold-title">{title}</span>
        {detail && <span class="fold-detail">{detail}</span>}
        {status && <span class="fold-status">{status}</span>}
        <Icon name="chevron" size={14} />
      </summary>
      {open && <div class="fold-body">{children()}</div>}
    </details>
  );
}

function oneLine(text: string, length: number): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > length ? `${line.slice(0, length)}…` : line;
}

/** The arguments in a line: the values of a flat object, else the text. */
export function summary(args: string): string {
  try {
    const parsed: unknown = JSON.parse(args);
    if (parsed !== null && typeof parsed === "object" && !Array.isArray(parsed)) {
      const values = Object.values(parsed).map((value) => (typeof value === "string" ? value : JSON.stringify(value)));
      return oneLine(values.join(", "), 80);
    }
  } catch {
    return oneLine(args, 80);
  }
  return oneLine(args, 80);
}

interface ToolProps {
  call: ToolCall;
  conversation: Conversation;
  running: boolean;
}

/** A tool call: its name and arguments in a line; inside, the arguments and what came back. */
export function ToolFold({ call, conversation, running }: ToolProps) {
  const results = conversation.messages.filter((message) => message.toolCallId === call.id);
  const failed = results.some((result) => result.error !== undefined);
  const writing = conversation.isCalling(call.id);
  const busy = running && results.length === 0;
  const status = failed ? "failed" : results.length > 0 ? "done" : busy ? (writing ? "preparing" : "running") : "no result";
  return (
    <Fold
      kind="tool-call" icon="tool" title={call.function.name} detail={summary(call.function.arguments)}
      status={status} busy={busy}
    >
      {() => (
        <>
          <Section label="Arguments" text={pretty(call.function.arguments) || "none"} />
          {results.map((result, i) => (
            <Section key={i} label="Result" text={resultText(result)} />
          ))}
        </>
      )}
    </Fold>
  );
}

function resultText(result: Message): string {
  const content = pretty(plainText(result.content)) || JSON.stringify(result.content, null, 2) || "";
  return result.error === undefined ? content : `${result.error}\n${content}`.trim();
}

function Section({ label, text }: { label: string; text: string }) {
  return (
    <section>
      <h4>{label}</h4>
      <pre tabIndex={0}>{text}</pre>
    </section>
  );
}

/** A result whose call is not among the messages. */
export function ResultFold({ message }: { message: Message }) {
  return (
    <Fold kind="tool-result" icon="tool" title="Tool result" detail={oneLine(plainText(message.content), 80)}>
      {() => <Section label="Result" text={resultText(message)} />}
    </Fold>
  );
}

/** Reasoning: while it is written, its latest line is seen; afterwards it is folded away. */
export function ReasoningFold({ message, writing }: { message: Message; writing: boolean }) {
  const text = plainText(message.content);
  const latest = text.trimEnd().slice(-90).replace(/\s+/g, " ");
  return (
    <Fold
      kind="reasoning" icon="thought" title={writing ? "Thinking" : "Reasoning"}
      detail={writing ? latest : undefined} busy={writing}
    >
      {() => <Markdown text={text} done={!writing} />}
    </Fold>
  );
}

/** An activity of the agent, shown simply. */
export function ActivityFold({ message }: { message: Message }) {
  return (
    <Fold
      kind="activity" icon="activity" title={message.activityType ?? "activity"}
      detail={summary(JSON.stringify(message.content))}
    >
      {() => <Section label="Content" text={JSON.stringify(message.content, null, 2)} />}
    </Fold>
  );
}

/** A message of the system or the developer. */
export function SystemFold({ message }: { message: Message }) {
  return (
    <Fold kind="system-message" icon="braces" title={message.role === "system" ? "System message" : "Developer message"}>
      {() => <Section label="Text" text={plainText(message.content)} />}
    </Fold>
  );
}
