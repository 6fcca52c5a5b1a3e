import { useEffect, useState } from "preact/hooks";
import type { ThreadSession } from "../thread/session";

const quietAfter = 10; // seconds without an event until the page says so

/** Seconds since the last event of the run, once they are worth mentioning; else 0. */
export function quietFor(session: ThreadSession, now = Date.now()): number {
  if (session.active === undefined) return 0;
  const seconds = Math.floor((now - session.lastEventAt) / 1_000);
  return seconds > quietAfter ? seconds : 0;
}

/** Draws the component again every second while a run goes on. */
export function useSeconds(running: boolean): void {
  const [, setTick] = useState(0);
  useEffect(() => {
    if (!running) return;
    const timer = setInterval(() => setTick((tick) => tick + 1), 1_000);
    return () => clearInterval(timer);
  }, [running]);
}

/** What goes on while no text is being written. */
export function Progress({ session }: { session: ThreadSession }) {
  useSeconds(session.busy);
  const { outbox, conversation } = session;
  if (outbox.stuck) {
    return (
      <div class="progress">
        The server did not answer.
        <button type="button" class="link" onClick={() => outbox.retry()}>
          Try again
        </button>
      </div>
    );
  }
  if (!session.busy) return null;
  const last = conversation.messages.at(-1);
  const writing = last !== undefined && conversation.isWriting(last.id) && last.content !== "";
  const quiet = quietFor(session);
  if (writing && quiet === 0 && !session.stopping) return null;
  return (
    <div class="progress">
      <span class="dots" aria-hidden="true">
        <i />
        <i />
        <i />
      </span>
      {doing(session, quiet)}
    </div>
  );
}

function doing(session: ThreadSession, quiet: number): string {
  if (session.stopping) return "Stopping";
  if (session.active === undefined) {
    return session.link === "connected" ? "Sending" : "Will be sent when the connection is back";
  }
  const step = session.conversation.steps.at(-1);
  if (quiet > 0) return step ? `${step} · quiet for ${quiet} s` : `Quiet for ${quiet} s. The run goes on.`;
  return step ?? "";
}
