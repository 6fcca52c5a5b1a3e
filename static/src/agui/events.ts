// The parts of AG-UI 1.0 that the page reads. Whatever else an event carries is left alone.

export interface AguiEvent {
  type: string;
  [field: string]: unknown;
}

export type Metadata = Record<string, unknown>;

export type Role = "developer" | "system" | "user" | "assistant" | "tool" | "activity" | "reasoning";

export interface ContentPart {
  type: string;
  text?: string;
  source?: { type: string; value: string; mimeType?: string };
  [field: string]: unknown;
}

export interface ToolCall {
  id: string;
  type: "function";
  function: { name: string; arguments: string };
  encryptedValue?: string;
  metadata?: Metadata;
}

export interface Message {
  id: string;
  role: Role;
  content?: string | ContentPart[] | Record<string, unknown>;
  name?: string;
  toolCalls?: ToolCall[];
  toolCallId?: string;
  error?: string;
  activityType?: string;
  encryptedValue?: string;
  subagentRunId?: string;
  metadata?: Metadata;
}

export interface Interrupt {
  id: string;
  reason: string;
  message?: string;
  toolCallId?: string;
  responseSchema?: Record<string, unknown>;
  expiresAt?: string;
  [field: string]: unknown;
}

export interface ResumeEntry {
  interruptId: string;
  status: "resolved" | "cancelled";
  payload?: unknown;
}

/** How a run stands, in the words that the server uses for outcomes. */
export type RunState =
  | "running"
  | "waiting"
  | "finished"
  | "stopped"
  | "failed"
  | "timed_out"
  | "lost"
  | "shut_down";

/** The string in the field, or undefined: an empty string is a value, anything else is not. */
export function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** The text parts of a content, joined in order; the other parts are left out (AG-UI 1.0, section 5.3). */
export function plainText(content: Message["content"]): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((part) => (part.type === "text" ? (part.text ?? "") : "")).join("");
}

/** Merges metadata key by key, the last write winning (AG-UI 1.0, section 5.1). */
export function mergeMetadata(target: { metadata?: Metadata }, added: unknown): void {
  if (added === null || typeof added !== "object" || Array.isArray(added)) return;
  target.metadata = { ...target.metadata, ...structuredClone(added as Metadata) };
}
