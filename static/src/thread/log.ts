import { Conversation } from "../agui/conversation";
import type { AguiEvent } from "../agui/events";
import type { EventsFrame, Reset } from "../wire";

interface RunEvents {
  id: string;
  events: AguiEvent[];
}

const deltas = new Set(["TEXT_MESSAGE_CONTENT", "TOOL_CALL_ARGS", "REASONING_MESSAGE_CONTENT"]);
const plainFields = new Set(["type", "messageId", "toolCallId", "delta", "timestamp"]);

/**
 * The events of a thread as far as they are known, kept run by run, so that one run can be forgotten and the
 * conversation built again from the others. New events at the end are applied at once.
 */
export class ThreadLog {
  /** The position after the last event applied; empty before the first. */
  cursor = "";

  private runs: RunEvents[] = [];
  private built = new Conversation();
  private stale = false;
  private next: { runId: string; from: string } | undefined; // what a frame of that run has to continue

  /** The conversation that the events amount to. */
  get conversation(): Conversation {
    if (this.stale) this.rebuild();
    return this.built;
  }

  /** Takes a frame. It answers false, and takes nothing, if the frame leaves out or repeats events of its run. */
  add(frame: EventsFrame): boolean {
    if (this.next?.runId === frame.runId && this.next.from !== frame.from) return false;
    const run = this.runFor(frame.runId);
    const last = run === this.runs.at(-1);
    for (const event of frame.events) {
      if (last && !this.stale) this.built.apply(run.id, event);
      keep(run.events, event);
    }
    if (!last) this.stale = true;
    this.next = { runId: frame.runId, from: frame.to };
    this.cursor = frame.to;
    return true;
  }

  /** Forgets a run, or everything, and goes back to the position from which it will be sent again. */
  reset({ runId, from }: Reset): void {
    if (runId === null || runId === undefined) this.runs = [];
    const run = this.runs.find((known) => known.id === runId);
    if (run) run.events = []; // it keeps its place among the runs
    this.stale = true;
    this.next = runId ? { runId, from } : undefined;
    this.cursor = from;
  }

  /** Notes a position that the server gave without events. */
  advance(cursor: string | undefined): void {
    if (cursor) this.cursor = cursor;
  }

  private runFor(id: string): RunEvents {
    let run = this.runs.findLast((known) => known.id === id);
    if (!run) {
      run = { id, events: [] };
      this.runs.push(run);
    }
    return run;
  }

  private rebuild(): void {
    this.built = new Conversation();
    for (const run of this.runs) {
      for (const event of run.events) this.built.apply(run.id, event);
    }
    this.stale = false;
  }
}

/** Appends the event to the list; a delta that only adds text goes into the delta before it. */
function keep(events: AguiEvent[], event: AguiEvent): void {
  const last = events.at(-1);
  const joins =
    last?.type === event.type && deltas.has(event.type) &&
    last.messageId === event.messageId && last.toolCallId === event.toolCallId &&
    typeof last.delta === "string" && typeof event.delta === "string" && isPlain(last) && isPlain(event);
  if (joins) last.delta = (last.delta as string) + (event.delta as string);
  else events.push(joinable(event));
}

function isPlain(event: AguiEvent): boolean {
  return Object.keys(event).every((field) => plainFields.has(field));
}

/** The list's own copy of a delta, because deltas after it are joined into it. */
function joinable(event: AguiEvent): AguiEvent {
  return deltas.has(event.type) ? { ...event } : event;
}
