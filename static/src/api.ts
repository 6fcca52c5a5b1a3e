// The server's REST interface, as far as the page uses it.

import type { RunState } from "./agui/events";

export interface Agent {
  id: string;
  type: string;
  default?: boolean;
}

export interface ThreadSummary {
  id: string;
  title: string;
  name?: string; // that it was given in place of the title
  state: RunState | "idle";
  runId?: string | null;
  agentId?: string | null;
  activity: string; // RFC 3339
  archived?: boolean;
  revision?: number; // grows with each change
}

async function get<T>(path: string): Promise<T> {
  const response = await fetch(path, { headers: { accept: "application/json" } });
  if (!response.ok) throw new Error(`${path} answered ${response.status}`);
  return (await response.json()) as T;
}

export async function listAgents(): Promise<Agent[]> {
  return (await get<{ agents: Agent[] }>("/api/agents")).agents ?? [];
}

/** Deletes a thread; one that is already gone counts as deleted. */
export async function deleteThread(id: string): Promise<void> {
  const response = await fetch(`/api/threads/${encodeURIComponent(id)}`, { method: "DELETE" });
  if (!response.ok && response.status !== 404 && response.status !== 410) throw new Error(`deleting answered ${response.status}`);
}
