import type { Channel } from "phoenix";
import type { Interrupt, Message, ResumeEntry, RunState } from "../agui/events";
import type { Conversation } from "../agui/conversation";
import { newId } from "../id";
import { explain, type CaughtUp, type EventsFrame, type JoinReply, type Reset, type RunReply, type RunRequest } from "../wire";
import type { StatusReply, WireError } from "../wire";
import type { Connection, Link } from "./connection";
import { ThreadLog } from "./log";
import { Outbox, type Answer, type Outgoing } from "./outbox";

/** What the user is told, calmly, beside the conversation. */
export interface Notice {
  code: string;
  text: string;
}

const stopTimeout = 35_000; // ms; a stop is answered when the run has ended durably
const resetPause = 300; // ms for which a reset run stays on screen, waiting for its replacement
const reopenPause = 1_000; // ms until a topic that the server closed is joined again

/**
 * One thread as the page sees it: follows its topic, keeps its log, asks for runs and stops them.
 * It tells its owner of every change; the owner decides when to draw.
 */
export class ThreadSession {
  readonly log = new ThreadLog();
  readonly outbox: Outbox;
  /** Whether what was there at join has arrived. */
  caughtUp = false;
  deleted = false;
  stopping = false;
  /** Whether the screen should stay as it is for a moment, because a run is being replaced. */
  held = false;
  agentId: string | undefined;
  notice: Notice | undefined;
  /** Text that the server refused; the composer takes it back. */
  returned: string | undefined;
  /** When the last event arrived or was said to have happened, in ms since the epoch. */
  lastEventAt = Date.now();

  private channel!: Channel;
  private joined = false;
  private closed = false;
  private announced: string | undefined; // the active run, as the server last said outside the events
  private local: Message[] = []; // sent, and not among the events yet
  private gapAt: string | undefined; // the cursor at which a gap was met
  private holdTimer: ReturnType<typeof setTimeout> | undefined;
  private reopenTimer: ReturnType<typeof setTimeout> | undefined;
  private unlisten: () => void;

  constructor(private connection: Connection, readonly id: string, private changed: () => void) {
    this.outbox = new Outbox(
      (out, answer) => this.ask(out, answer),
      () => this.joined,
      (out, result) => this.settled(out, result),
    );
    this.unlisten = connection.onChange(() => this.onLink());
    this.open();
  }

  get conversation(): Conversation {
    return this.log.conversation;
  }

  /** The messages to show and to send: those of the events, then those that only this page knows yet. */
  get messages(): Message[] {
    const held = this.conversation.messages;
    if (this.local.length === 0) return held;
    const known = new Set(held.map((message) => message.id));
    this.local = this.local.filter((message) => !known.has(message.id));
    return [...held, ...this.local];
  }

  get link(): Link {
    const link = this.connection.link;
    return link === "connected" && !this.joined && !this.deleted ? "reconnecting" : link;
  }

  /** The id of the run that is going on, if there is one. */
  get active(): string | undefined {
    if (this.announced !== undefined) {
      const run = this.conversation.run(this.announced);
      if (!run || run.state === "running") return this.announced;
    }
    const last = this.conversation.runs.at(-1);
    return this.caughtUp && last?.state === "running" ? last.id : undefined;
  }

  /** Whether a run is going on or being asked for. */
  get busy(): boolean {
    return this.active !== undefined || this.outbox.current !== undefined;
  }

  get runState(): RunState | "idle" {
    if (this.active !== undefined || this.outbox.waiting) return "running";
    const last = this.conversation.runs.at(-1);
    if (!last || last.state === "running") return "idle";
    return last.state;
  }

  /** Sends a user message, which starts a run. */
  send(textToSend: string, agentId: string | undefined): void {
    if (this.busy || this.deleted) return;
    const message: Message = { id: newId(), role: "user", content: textToSend };
    this.local.push(message);
    this.start({ runId: newId(), agentId, message, text: textToSend });
  }

  /** Answers what the last run asked: every pending interrupt has to be covered, once. */
  resume(answers: ResumeEntry[], agentId: string | undefined): void {
    if (!this.busy && !this.deleted) this.start({ runId: newId(), agentId, resume: answers });
  }

  /** Starts a run on the conversation as it is, after one that failed. */
  again(agentId: string | undefined): void {
    if (!this.busy && !this.deleted) this.start({ runId: newId(), agentId });
  }

  /** Stops the run that is going on; a message that could not be sent yet is taken back. */
  stop(): void {
    if (this.active === undefined && !this.outbox.waiting) return this.withdraw();
    const runId = this.active ?? this.outbox.current?.runId;
    if (runId === undefined || this.stopping) return;
    this.stopping = true;
    const failed = (said: string) => {
      this.stopping = false;
      if (this.active === runId) this.notice = { code: "stop", text: said };
      this.changed();
    };
    this.channel
      .push("stop", { runId }, stopTimeout)
      .receive("ok", (reply: { stopped?: boolean }) => {
        if (reply?.stopped === false) this.stopping = false;
        this.changed();
      })
      .receive("error", (error: WireError) => failed(explain(error)))
      .receive("timeout", () => failed("The server has not confirmed the stop. Try again in a moment."));
    this.changed();
  }

  private withdraw(): void {
    const out = this.outbox.withdraw();
    if (!out) return;
    this.local = this.local.filter((message) => message !== out.message);
    this.returned = out.text;
    this.changed();
  }

  dismiss(): void {
    this.notice = undefined;
    this.changed();
  }

  /** Leaves the topic. The run, if there is one, goes on. */
  close(): void {
    this.closed = true;
    this.unlisten();
    clearTimeout(this.holdTimer);
    clearTimeout(this.reopenTimer);
    this.channel.leave();
  }

  private start(out: Outgoing): void {
    this.notice = undefined;
    this.lastEventAt = Date.now();
    this.outbox.post(out);
    this.changed();
  }

  private open(): void {
    // phoenix evaluates the function at every join, so that each one resumes where the log is.
    const channel = this.connection.socket.channel(`thread:${this.id}`, () =>
      this.log.cursor === "" ? {} : { after: this.log.cursor },
    );
    this.channel = channel;
    channel.on("ag_ui_events", (frame: EventsFrame) => this.onEvents(frame));
    channel.on("caught_up", (payload: CaughtUp) => this.onCaughtUp(payload));
    channel.on("reset", (payload: Reset) => this.onReset(payload));
    channel.on("thread_deleted", () => this.onDeleted());
    channel.onError(() => this.onLink());
    channel.onClose(() => this.onClose(channel));
    channel
      .join()
      .receive("ok", (reply: JoinReply) => this.onJoined(reply))
      .receive("error", (error: WireError) => this.onJoinRefused(error))
      .receive("timeout", () => this.onLink());
  }

  private onJoined(reply: JoinReply): void {
    this.joined = true;
    this.announced = reply.running ? (reply.runId ?? undefined) : undefined;
    if (reply.agentId) this.agentId = reply.agentId;
    if (this.notice?.code === "join") this.notice = undefined;
    if (this.announced !== undefined) this.askAge();
    this.outbox.resume();
    this.changed();
  }

  /** Learns how long a run that was going on before the join has been silent. */
  private askAge(): void {
    this.channel.push("status", {}).receive("ok", (status: StatusReply) => {
      const age = status?.lastEventAgeMs;
      if (typeof age === "number" && age >= 0) this.lastEventAt = Date.now() - age;
      this.changed();
    });
  }

  private onJoinRefused(error: WireError): void {
    this.joined = false;
    if (error?.code === "thread_deleted") {
      this.onDeleted();
      this.channel.leave();
    } else if (error?.code === "bad_cursor") this.log.reset({ runId: null, from: "" });
    else this.notice = { code: "join", text: explain(error) };
    this.changed();
  }

  private onLink(): void {
    if (this.channel.state !== "joined") {
      this.joined = false;
      this.stopping = false;
      this.outbox.interrupted();
    }
    this.changed();
  }

  private onClose(channel: Channel): void {
    if (this.closed || channel !== this.channel) return;
    this.joined = false;
    this.outbox.interrupted();
    if (!this.deleted) this.reopenTimer = setTimeout(() => this.open(), reopenPause);
    this.changed();
  }

  private onEvents(frame: EventsFrame): void {
    if (!this.log.add(frame)) return this.onGap();
    this.gapAt = undefined;
    this.held = false;
    if (!frame.replay) this.lastEventAt = Date.now();
    this.outbox.seen(frame.runId);
    if (this.active === undefined) this.stopping = false;
    this.changed();
  }

  /**
   * Events are missing or came again: join anew from the cursor, and if that does not help, from the beginning. phoenix
   * drops what is still sent to the former join.
   */
  private onGap(): void {
    if (this.closed || this.deleted) return;
    const cursor = this.log.cursor;
    if (this.gapAt === cursor) {
      this.log.reset({ runId: null, from: "" });
      this.hold();
    }
    this.gapAt = cursor;
    const former = this.channel;
    this.joined = this.caughtUp = false;
    this.outbox.interrupted();
    this.open();
    former.leave();
  }

  private onCaughtUp({ cursor }: CaughtUp): void {
    this.log.advance(cursor);
    this.caughtUp = true;
    this.held = false;
    this.changed();
  }

  private onReset(reset: Reset): void {
    this.log.reset(reset);
    this.hold();
  }

  private hold(): void {
    this.held = true;
    clearTimeout(this.holdTimer);
    this.holdTimer = setTimeout(() => {
      this.held = false;
      this.changed();
    }, resetPause);
  }

  private onDeleted(): void {
    this.deleted = true;
    this.changed();
  }

  private ask(out: Outgoing, answer: Answer): void {
    const { messages, conversation } = this;
    const request: RunRequest = {
      runId: out.runId,
      // Activity messages are for the eyes only and are not sent (AG-UI 1.0, section 6).
      messages: messages.filter((message) => message.role !== "activity"),
    };
    if (out.agentId) request.agentId = out.agentId;
    if (out.resume) request.resume = out.resume;
    if (conversation.state !== null && conversation.state !== undefined) request.state = conversation.state;
    this.channel
      .push("run", request)
      .receive("ok", (reply: RunReply) => answer.accepted(reply?.runId ?? out.runId))
      .receive("error", (error: WireError) => answer.refused(error))
      .receive("timeout", () => {
        answer.unanswered();
        this.changed();
      });
  }

  private settled(out: Outgoing, { runId, error }: { runId?: string; error?: unknown }): void {
    if (runId !== undefined) {
      this.announced = runId;
      if (out.agentId) this.agentId = out.agentId;
    } else {
      const refusal = error as WireError | undefined;
      this.local = this.local.filter((message) => message !== out.message);
      this.returned = out.text;
      this.stopping = false;
      this.notice = { code: refusal?.code ?? "refused", text: explain(refusal) };
    }
    this.changed();
  }
}

/** What the user can still do about an interrupt: one that has expired may only be cancelled (AG-UI 1.0, section 9). */
export function isExpired(interrupt: Interrupt, now = Date.now()): boolean {
  const at = Date.parse(interrupt.expiresAt ?? "");
  return !Number.isNaN(at) && at <= now;
}
