// What goes over the socket on the topic of a thread. Cursors are text, and nobody looks inside.

import type { ThreadSummary } from "./api";
import type { AguiEvent, Message, ResumeEntry } from "./agui/events";

export interface JoinReply {
  cursor?: string;
  resumed?: boolean;
  running?: boolean;
  runId?: string | null;
  agentId?: string | null;
}

/** Events of one run. They continue `from`, and `to` is the position after them. */
export interface EventsFrame {
  runId: string;
  from: string;
  to: string;
  replay?: boolean;
  events: AguiEvent[];
}

export interface CaughtUp {
  cursor?: string;
  running?: boolean;
}

/** What is to be forgotten: a run, or the whole thread if runId is null. */
export interface Reset {
  runId: string | null;
  from: string;
}

export interface RunRequest {
  agentId?: string;
  runId: string;
  messages: Message[];
  state?: unknown;
  resume?: ResumeEntry[];
}

export interface RunReply {
  runId: string;
  cursor?: string;
}

export interface StatusReply {
  running?: boolean;
  runId?: string | null;
  agentId?: string | null;
  lastEventAgeMs?: number;
}

/** A page of the list of threads, newest activity first; next begins the one after it. */
export interface ThreadPage {
  threads: ThreadSummary[];
  next: string | null;
}

/** A change of a thread in the list, and how it left the thread; of one that was deleted there is no more than its id. */
export interface ThreadChange {
  change: string;
  thread: ThreadSummary & { revision: number };
}

export interface WireError {
  code?: string;
  message?: string;
  reason?: string;
  runId?: string;
}

const sentences: Record<string, string> = {
  thread_busy: "Another run is going on in this thread. Wait for it to end, or stop it, then send again.",
  unknown_agent: "The server does not know this agent. Choose another one.",
  draining: "The server is shutting down. Send again in a moment.",
  unavailable: "The server cannot reach its storage right now. Send again in a moment.",
  rate_limited: "Too many requests. Send again in a moment.",
  too_large: "The message is too large for the server.",
  not_authorized: "You are not allowed to do this in this thread.",
};

/** An error of the server as a sentence for people. */
export function explain(error: WireError | undefined): string {
  const known = sentences[error?.code ?? ""];
  if (known) return known;
  return error?.message || error?.reason || "The server refused, and did not say why.";
}
