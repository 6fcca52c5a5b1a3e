import { ChunkExpander } from "./chunks";
import { applyPatch } from "./patch";
import { Transcript } from "./transcript";
import { text, type AguiEvent, type Interrupt, type Message, type ResumeEntry, type RunState } from "./events";

/** One run, as its events tell it. */
export interface Run {
  id: string;
  state: RunState;
  error?: { code?: string; message: string };
  /** What the run asked when it ended, if it waits or waited for an answer. */
  interrupts?: Interrupt[];
  /** The last message when the run ended: what is to be said about the end follows it. */
  anchor?: string;
}

const endings: Record<string, RunState> = {
  stopped: "stopped",
  timed_out: "timed_out",
  lost: "lost",
  shut_down: "shut_down",
};

/**
 * What the events of a thread amount to: messages, shared state, runs and what waits for an answer
 * (AG-UI 1.0, section 13). Events are applied in order, each once.
 */
export class Conversation {
  readonly transcript: Transcript;
  state: unknown = {};
  pending: Interrupt[] = [];
  runs: Run[] = [];
  /** What was answered to interrupts, by their ids. */
  answers = new Map<string, ResumeEntry>();
  /** The steps that are open, by name. */
  steps: string[] = [];
  /** The names of subagents, by subagentRunId. */
  subagents = new Map<string, string>();
  /** A number that grows with every change of the state. */
  stateVersion = 0;

  private expander = new ChunkExpander();
  private openMessages = new Set<string>();
  private openCalls = new Set<string>();

  constructor(initial: { messages?: Message[]; state?: unknown } = {}) {
    this.transcript = new Transcript(initial.messages);
    if (initial.state !== undefined) this.state = structuredClone(initial.state);
  }

  get messages(): Message[] {
    return this.transcript.messages;
  }

  run(id: string): Run | undefined {
    return this.runs.findLast((run) => run.id === id);
  }

  /** Whether the text or reasoning message is still being written. */
  isWriting(messageId: string): boolean {
    return this.openMessages.has(messageId);
  }

  /** Whether the arguments of the tool call are still being written. */
  isCalling(toolCallId: string): boolean {
    return this.openCalls.has(toolCallId);
  }

  /** Applies one event of a run. An event that cannot be used is passed over: a viewer never fails on one. */
  apply(runId: string, event: AguiEvent): void {
    try {
      for (const expanded of this.expander.expand(event)) this.reduce(runId, expanded);
    } catch (err) {
      console.warn(`threadcast: an event of type ${event?.type} was passed over`, (err as Error).message);
    }
  }

  private reduce(runId: string, event: AguiEvent): void {
    this.follow(event);
    const transcript = this.transcript;
    switch (event.type) {
      case "RUN_STARTED":
        return this.begin(runId, event.input as { messages?: unknown; resume?: unknown } | undefined);
      case "RUN_FINISHED":
        return this.finish(runId, event.outcome as { type?: string; interrupts?: Interrupt[] } | undefined);
      case "RUN_ERROR":
        return this.fail(runId, event);
      case "TEXT_MESSAGE_START":
        return transcript.open(event, (text(event.role) ?? "assistant") as Message["role"]);
      case "REASONING_MESSAGE_START":
        return transcript.open(event, "reasoning");
      case "TEXT_MESSAGE_CONTENT":
      case "REASONING_MESSAGE_CONTENT":
        return transcript.append(event);
      case "TEXT_MESSAGE_END":
      case "REASONING_MESSAGE_END":
        return transcript.close(event);
      case "TOOL_CALL_START":
        return transcript.openCall(event);
      case "TOOL_CALL_ARGS":
      case "TOOL_CALL_END":
        return transcript.appendArgs(event);
      case "TOOL_CALL_RESULT":
        return transcript.result(event);
      case "REASONING_ENCRYPTED_VALUE":
        return transcript.encrypted(event);
      case "ACTIVITY_SNAPSHOT":
        return transcript.activity(event);
      case "ACTIVITY_DELTA":
        return transcript.patchActivity(event);
      case "MESSAGES_SNAPSHOT":
        return transcript.replace(event);
      case "STATE_SNAPSHOT":
        return this.setState(structuredClone(event.snapshot));
      case "STATE_DELTA":
        return this.setState(applyPatch(this.state, event.delta));
    }
  }

  /** Keeps track of what is open, for carets and progress; it has no part in messages and state. */
  private follow(event: AguiEvent): void {
    switch (event.type) {
      case "TEXT_MESSAGE_START":
      case "REASONING_MESSAGE_START":
        this.openMessages.add(event.messageId as string);
        return;
      case "TEXT_MESSAGE_END":
      case "REASONING_MESSAGE_END":
        this.openMessages.delete(event.messageId as string);
        return;
      case "TOOL_CALL_START":
        this.openCalls.add(event.toolCallId as string);
        return;
      case "TOOL_CALL_END":
        this.openCalls.delete(event.toolCallId as string);
        return;
      case "STEP_STARTED":
        this.steps.push(text(event.stepName) ?? "");
        return;
      case "STEP_FINISHED":
        this.steps = this.steps.filter((name) => name !== event.stepName);
        return;
      case "SUBAGENT_STARTED":
        this.subagents.set(text(event.subagentRunId) ?? "", text(event.name) ?? "");
        return;
    }
  }

  private setState(state: unknown): void {
    this.state = state;
    this.stateVersion++;
  }

  private begin(runId: string, input: { messages?: unknown; resume?: unknown } | undefined): void {
    this.runs.push({ id: runId, state: "running" });
    this.transcript.add(input?.messages);
    if (!Array.isArray(input?.resume)) return;
    for (const entry of input.resume as ResumeEntry[]) this.answers.set(entry.interruptId, structuredClone(entry));
  }

  private finish(runId: string, outcome: { type?: string; interrupts?: Interrupt[] } | undefined): void {
    const waiting = outcome?.type === "interrupt" && Array.isArray(outcome.interrupts);
    this.pending = waiting ? structuredClone(outcome.interrupts!) : [];
    const state = waiting ? "waiting" : outcome?.type === "cancelled" ? "stopped" : "finished";
    this.end(runId, waiting ? { state, interrupts: this.pending } : { state });
  }

  private fail(runId: string, event: AguiEvent): void {
    const code = text(event.code);
    const error = { code, message: text(event.message) ?? "" };
    this.end(runId, { state: endings[code ?? ""] ?? "failed", error });
  }

  private end(runId: string, ending: Pick<Run, "state" | "error" | "interrupts">): void {
    let run = this.run(runId);
    if (!run) {
      run = { id: runId, state: "running" };
      this.runs.push(run);
    }
    Object.assign(run, ending, { anchor: this.messages.at(-1)?.id });
    this.steps = [];
    this.closeAll();
  }

  private closeAll(): void {
    for (const id of this.openMessages) this.transcript.touch(this.transcript.find(id));
    for (const id of this.openCalls) this.transcript.touch(this.transcript.call(id)?.holder);
    this.openMessages.clear();
    this.openCalls.clear();
  }
}
