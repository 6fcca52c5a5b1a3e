import { applyPatch } from "./patch";
import { mergeMetadata, text, type AguiEvent, type Message, type Metadata, type ToolCall } from "./events";

/**
 * The messages of a thread, as AG-UI 1.0, section 13, rules R1 to R5 and R7 to R10, builds them from events.
 * Messages change in place; version tells a reader whether one did.
 */
export class Transcript {
  messages: Message[] = [];
  private versions = new WeakMap<Message, number>();

  constructor(initial: Message[] = []) {
    this.messages = structuredClone(initial);
  }

  /** A number that grows whenever the message, or what is shown with it, changes. */
  version(message: Message): number {
    return this.versions.get(message) ?? 0;
  }

  touch(message: Message | undefined): void {
    if (message) this.versions.set(message, this.version(message) + 1);
  }

  find(id: string | undefined): Message | undefined {
    return this.messages.findLast((message) => message.id === id);
  }

  /** The message that holds the tool call, and the call. */
  call(id: string): { holder: Message; call: ToolCall } | undefined {
    for (let i = this.messages.length - 1; i >= 0; i--) {
      const holder = this.messages[i]!;
      const call = holder.toolCalls?.find((held) => held.id === id);
      if (call) return { holder, call };
    }
    return undefined;
  }

  /** R10: each message that is not known yet. */
  add(messages: unknown): void {
    if (!Array.isArray(messages)) return;
    const known = new Set(this.messages.map((message) => message.id));
    for (const message of messages as Message[]) {
      if (typeof message?.id !== "string" || known.has(message.id)) continue;
      known.add(message.id);
      this.messages.push(structuredClone(message));
    }
  }

  /** R1 and R4. */
  open(event: AguiEvent, role: Message["role"]): void {
    const id = text(event.messageId);
    if (id === undefined) return;
    let message = this.find(id);
    if (!message) {
      message = { id, role, content: "" };
      if (typeof event.name === "string") message.name = event.name;
      tag(message, event);
      this.messages.push(message);
    }
    this.merge(message, event);
  }

  append(event: AguiEvent): void {
    const message = this.find(text(event.messageId));
    if (!message || message.role === "activity") return;
    message.content = (typeof message.content === "string" ? message.content : "") + (text(event.delta) ?? "");
    this.merge(message, event);
  }

  close(event: AguiEvent): void {
    const message = this.find(text(event.messageId));
    if (message) this.merge(message, event);
  }

  private merge(message: Message, event: AguiEvent): void {
    if (message.role === "activity") return;
    mergeMetadata(message, event.metadata);
    this.touch(message);
  }

  /** R2. */
  openCall(event: AguiEvent): void {
    const id = text(event.toolCallId);
    const name = text(event.toolCallName);
    if (id === undefined || name === undefined) return;
    const known = this.call(id);
    if (known) {
      known.call.function.name = name;
      mergeMetadata(known.call, event.metadata);
      this.touch(known.holder);
      return;
    }
    const holder = this.holderFor(id, event);
    const call: ToolCall = { id, type: "function", function: { name, arguments: "" } };
    mergeMetadata(call, event.metadata);
    holder.toolCalls = [...(holder.toolCalls ?? []), call];
    this.touch(holder);
  }

  private holderFor(callId: string, event: AguiEvent): Message {
    const parentId = text(event.parentMessageId);
    const parent = this.find(parentId);
    if (parent?.role === "assistant") return parent;
    const holder: Message = { id: parent ? callId : (parentId ?? callId), role: "assistant" };
    tag(holder, event);
    this.messages.push(holder);
    return holder;
  }

  appendArgs(event: AguiEvent): void {
    const known = this.call(text(event.toolCallId) ?? "");
    if (!known) return;
    known.call.function.arguments += text(event.delta) ?? "";
    mergeMetadata(known.call, event.metadata);
    this.touch(known.holder);
  }

  /** R3. */
  result(event: AguiEvent): void {
    const toolCallId = text(event.toolCallId);
    const id = text(event.messageId);
    if (toolCallId === undefined || id === undefined) return;
    const message: Message = {
      id, role: "tool", toolCallId, content: structuredClone(event.content) as Message["content"],
    };
    tag(message, event);
    mergeMetadata(message, event.metadata);
    const holder = this.call(toolCallId)?.holder;
    let at = holder ? this.messages.lastIndexOf(holder) + 1 : this.messages.length;
    while (holder && this.messages[at]?.role === "tool") at++;
    this.messages.splice(at, 0, message);
    this.touch(holder);
  }

  /** R5. */
  encrypted(event: AguiEvent): void {
    const id = text(event.entityId);
    const value = text(event.encryptedValue);
    if (id === undefined || value === undefined) return;
    if (event.subtype === "tool-call") {
      const first = this.messages.flatMap((message) => message.toolCalls ?? []).find((call) => call.id === id);
      if (first) first.encryptedValue = value;
      return;
    }
    const message = this.messages.find((held) => held.id === id);
    if (message && message.role !== "activity") message.encryptedValue = value;
  }

  /** R7. */
  activity(event: AguiEvent): void {
    const id = text(event.messageId);
    const activityType = text(event.activityType);
    if (id === undefined || activityType === undefined) return;
    const held = this.find(id);
    if (held && event.replace === false) {
      if (held.role === "activity") mergeMetadata(held, event.metadata);
      this.touch(held);
      return;
    }
    const message: Message = {
      id, role: "activity", activityType, content: structuredClone(event.content) as Message["content"],
    };
    tag(message, event);
    if (held?.role === "activity" && held.metadata) message.metadata = held.metadata;
    mergeMetadata(message, event.metadata);
    if (held) this.messages[this.messages.lastIndexOf(held)] = message;
    else this.messages.push(message);
  }

  /** R8. */
  patchActivity(event: AguiEvent): void {
    const held = this.find(text(event.messageId));
    if (held?.role !== "activity") return;
    held.content = applyPatch(held.content, event.patch);
    held.activityType = text(event.activityType) ?? held.activityType;
    mergeMetadata(held, event.metadata);
    this.touch(held);
  }

  /** R9. */
  replace(event: AguiEvent): void {
    if (!Array.isArray(event.messages)) return;
    const incoming = structuredClone(event.messages) as Message[];
    const byId = new Map(incoming.map((message) => [message.id, message]));
    const outlives = survivors(incoming, event.metadata as Metadata | undefined);
    const kept = this.messages.flatMap((message) => {
      const replacement = byId.get(message.id);
      if (replacement) return [replacement];
      return outlives(message) ? [message] : [];
    });
    const placed = new Set(kept);
    this.messages = [...kept, ...incoming.filter((message) => !placed.has(message))];
  }
}

/** Tells which held messages outlive a snapshot that does not name them. */
function survivors(incoming: Message[], metadata: Metadata | undefined): (message: Message) => boolean {
  const carries = (role: string) => incoming.some((message) => message.role === role);
  const extension = metadata?.["@ag-ui/client"] as { authoritativeActivityTypes?: unknown } | undefined;
  const declared = extension?.authoritativeActivityTypes;
  const types = Array.isArray(declared) && declared.every((type) => typeof type === "string") ? declared : [];
  const allActivity = carries("activity") || declared === null;
  const allReasoning = carries("reasoning");
  return (message) => {
    if (message.role === "activity") return !allActivity && !types.includes(message.activityType ?? "");
    return message.role === "reasoning" && !allReasoning;
  };
}

function tag(message: Message, event: AguiEvent): void {
  if (typeof event.subagentRunId === "string") message.subagentRunId = event.subagentRunId;
}
