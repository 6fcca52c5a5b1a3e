import type { Message, ResumeEntry } from "../agui/events";

/** A run that was asked for, until the server accepted or refused it. */
export interface Outgoing {
  runId: string;
  agentId?: string;
  /** The new user message; none when a waiting run is answered. */
  message?: Message;
  resume?: ResumeEntry[];
  /** What the user had typed, to be given back if the server refuses. */
  text?: string;
}

/** What Outbox needs to ask the server: it calls exactly one of the functions, once. */
export type Ask = (out: Outgoing, answer: Answer) => void;

export interface Answer {
  accepted(runId: string): void;
  refused(error: unknown): void;
  unanswered(): void;
}

const attempts = 3;

/**
 * Asks for one run at a time, until there is an answer. A run has the id that the page gave it, and the server starts
 * one run per id, so asking again after a lost answer is harmless.
 */
export class Outbox {
  current: Outgoing | undefined;
  /** No answer came after several attempts: the user has to say whether to try again. */
  stuck = false;

  private asked = 0;
  private attempt = 0; // grows with each question, so that a late answer to an earlier one is told apart

  constructor(
    private ask: Ask,
    private ready: () => boolean,
    private settled: (out: Outgoing, result: { runId?: string; error?: unknown }) => void,
  ) {}

  /** Whether a question is on its way and an answer may still come. */
  get waiting(): boolean {
    return this.asked !== 0;
  }

  post(out: Outgoing): void {
    this.current = out;
    this.retry();
  }

  /** Starts a fresh round of attempts. */
  retry(): void {
    this.stuck = false;
    this.attempt = 0;
    this.asked = 0;
    this.resume();
  }

  /** The connection was lost: an answer to what was asked cannot come any more. */
  interrupted(): void {
    this.asked = 0;
  }

  /** Asks if there is something to ask, nothing is being asked, and the server can be reached. */
  resume(): void {
    const out = this.current;
    if (!out || this.asked || this.stuck || !this.ready()) return;
    const mine = nextQuestion++;
    this.asked = mine;
    this.attempt++;
    const current = (then: () => void) => {
      if (this.asked !== mine || this.current !== out) return;
      this.asked = 0;
      then();
    };
    this.ask(out, {
      accepted: (runId) => current(() => this.settle({ runId })),
      refused: (error) => current(() => this.settle({ error })),
      unanswered: () => current(() => this.unanswered()),
    });
  }

  /** The run was seen among the thread's events, which is an answer as well. */
  seen(runId: string): void {
    if (this.current?.runId === runId) this.settle({ runId });
  }

  /** Gives up what has not been answered, without asking any more. */
  withdraw(): Outgoing | undefined {
    const out = this.current;
    this.current = undefined;
    this.asked = 0;
    this.stuck = false;
    return out;
  }

  private unanswered(): void {
    this.stuck = this.attempt >= attempts;
    this.resume();
  }

  private settle(result: { runId?: string; error?: unknown }): void {
    const out = this.withdraw();
    if (out) this.settled(out, result);
  }
}

let nextQuestion = 1;
