import { useRef } from "preact/hooks";
import { plainText } from "../agui/events";
import type { ThreadSession } from "../thread/session";

const pause = 2_000; // ms between two announcements while an answer is written
const kept = 6; // announcements that stay in the page

/** Cuts a growing answer into whole sentences, each of which is said once. */
export class Speech {
  private id: string | undefined;
  private said = 0;
  private at = 0;

  /** What is to be said now; empty if it is too early, or nothing new is complete. */
  next(id: string, text: string, done: boolean, now: number): string {
    if (id !== this.id) {
      this.id = id;
      this.said = 0;
      this.at = 0;
    }
    const rest = text.slice(this.said);
    if (rest === "" || (!done && now - this.at < pause)) return "";
    const end = done ? rest.length : Math.max(rest.lastIndexOf(". "), rest.lastIndexOf("\n")) + 1;
    if (end <= 0) return "";
    this.said += end;
    this.at = now;
    return rest.slice(0, end).replace(/[*_`#|>]+/g, "").trim();
  }

  /** Takes a text as read, because it was there before the reader came. */
  skip(id: string, length: number): void {
    this.id = id;
    this.said = length;
  }
}

/** Tells screen readers politely what is being answered, sentence by sentence rather than token by token. */
export function Announcer({ session }: { session: ThreadSession }) {
  const speech = useRef(new Speech());
  const lines = useRef<{ key: number; text: string }[]>([]);
  const started = useRef(false);
  const answer = session.conversation.messages.findLast((message) => message.role === "assistant" && message.content);
  if (answer) {
    const text = plainText(answer.content);
    if (!started.current) speech.current.skip(answer.id, text.length);
    const done = !session.conversation.isWriting(answer.id);
    const line = speech.current.next(answer.id, text, done, Date.now());
    const key = (lines.current.at(-1)?.key ?? 0) + 1;
    if (line !== "") lines.current = [...lines.current.slice(1 - kept), { key, text: line }];
  }
  if (session.caughtUp) started.current = true;
  return (
    <div class="sr-only" role="log" aria-live="polite" aria-label="Answer">
      {lines.current.map((line) => (
        <p key={line.key}>{line.text}</p>
      ))}
    </div>
  );
}
