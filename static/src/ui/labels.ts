import type { RunState } from "../agui/events";
import type { Link } from "../thread/connection";

const states: Record<RunState | "idle", string> = {
  idle: "new",
  running: "running",
  waiting: "waiting for you",
  finished: "finished",
  stopped: "stopped",
  failed: "failed",
  timed_out: "timed out",
  lost: "lost",
  shut_down: "shut down",
};

/** The state of a thread's latest run, in a word or two. */
export function stateLabel(state: RunState | "idle"): string {
  return states[state] ?? state;
}

/** How the connection stands, in a word. Before the first success the page is connecting, not reconnecting. */
export function linkLabel(link: Link, opened: boolean): string {
  if (link === "reconnecting") return opened ? "reconnecting…" : "connecting…";
  return link;
}
