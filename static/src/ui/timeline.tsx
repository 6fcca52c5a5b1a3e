import { useState } from "preact/hooks";
import type { App } from "../app";
import type { Message } from "../agui/events";
import type { Run } from "../agui/conversation";
import type { ThreadSession } from "../thread/session";
import { RunEnd } from "./ending";
import { Interrupts } from "./interrupts";
import { MessageView } from "./message";
import { Progress } from "./progress";

const shownAtFirst = 120; // messages; the ones before are there on request

export type Item = { kind: "message"; key: string; message: Message } | { kind: "end"; key: string; run: Run };

/** What the conversation shows, in order: the messages, and after each run's last one how the run ended. */
export function items(messages: Message[], runs: Run[]): Item[] {
  const ends = new Map<string | undefined, Run[]>();
  for (const run of runs) {
    if (run.state === "running" || run.state === "finished") continue;
    ends.set(run.anchor, [...(ends.get(run.anchor) ?? []), run]);
  }
  const held = new Set<string>(); // calls whose results are shown with them
  const last = new Map<string, number>(); // a message id may come twice; the last one is the anchor
  messages.forEach((message, i) => {
    last.set(message.id, i);
    for (const call of message.toolCalls ?? []) held.add(call.id);
  });
  const endItems = (anchor: string | undefined): Item[] =>
    (ends.get(anchor) ?? []).map((run) => ({ kind: "end", key: `end ${run.id}`, run }));
  const shown = messages.flatMap((message, i): Item[] => {
    const at = last.get(message.id) === i;
    const own: Item[] = isShown(message, held)
      ? [{ kind: "message", key: at ? message.id : `${message.id} ${i}`, message }]
      : [];
    return at ? [...own, ...endItems(message.id)] : own;
  });
  return [...endItems(undefined), ...shown];
}

function isShown(message: Message, heldCalls: Set<string>): boolean {
  if (message.role === "tool") return !heldCalls.has(message.toolCallId ?? "");
  return message.role !== "assistant" || Boolean(message.content) || (message.toolCalls?.length ?? 0) > 0;
}

export function Timeline({ app, session }: { app: App; session: ThreadSession }) {
  const [shown, setShown] = useState(shownAtFirst);
  const { conversation, messages } = session;
  const all = items(messages, conversation.runs);
  const visible = all.slice(Math.max(0, all.length - shown));
  const known = new Set(conversation.messages);
  const running = session.active !== undefined;
  const lastRun = conversation.runs.at(-1);
  const runMessages = running ? currentRun(all) : new Set<Item>();
  return (
    <div class="timeline">
      {visible.length < all.length && (
        <button type="button" class="button earlier" onClick={() => setShown(shown + shownAtFirst)}>
          Show earlier messages ({all.length - visible.length})
        </button>
      )}
      {visible.map((item, i) =>
        item.kind === "message" ? (
          <MessageView
            key={item.key}
            message={item.message}
            version={conversation.transcript.version(item.message)}
            conversation={conversation}
            running={runMessages.has(item)}
            last={!runMessages.has(item) && endsAnswer(visible[i + 1])}
            unsent={!known.has(item.message)}
          />
        ) : (
          <RunEnd key={item.key} run={item.run} conversation={conversation} onAgain={retry(app, session, item.run, lastRun)} />
        ),
      )}
      {!session.busy && conversation.pending.length > 0 && (
        <Interrupts key={conversation.pending.map((one) => one.id).join(" ")} app={app} interrupts={conversation.pending} />
      )}
      <Progress session={session} />
    </div>
  );
}

/** The messages after the last user message: a tool call among them may still get its result. */
function currentRun(all: Item[]): Set<Item> {
  const from = all.findLastIndex((item) => item.kind === "end" || item.message.role === "user");
  return new Set(all.slice(from + 1));
}

/** Whether the item before this one was the last of its answer. */
function endsAnswer(next: Item | undefined): boolean {
  return next === undefined || next.kind === "end" || next.message.role === "user";
}

/** Trying again is offered for the last run only, if it came to a bad end and asks nothing. */
function retry(app: App, session: ThreadSession, run: Run, last: Run | undefined): (() => void) | undefined {
  const offered = run === last && !session.busy && !session.deleted && session.conversation.pending.length === 0;
  return offered && run.state !== "stopped" && run.state !== "waiting" ? () => app.again() : undefined;
}
