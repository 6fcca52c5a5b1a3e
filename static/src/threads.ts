import type { Channel } from "phoenix";
import type { ThreadSummary } from "./api";
import type { Connection } from "./thread/connection";
import type { ThreadChange, ThreadPage } from "./wire";

const pageSize = 50;

/** The list of threads. Its first page comes with the join of its topic, what changes is pushed, and older pages come on request. */
export class ThreadList {
  threads: ThreadSummary[] = [];
  loaded = false;
  failed = false;
  /** Where the page after the last one begins; null if there is none. */
  next: string | null = null;

  private older = false; // whether more than the first page is held
  private deleted = new Map<string, number>(); // revisions of threads that are gone
  private channel: Channel;

  constructor(connection: Connection, private changed: () => void) {
    this.channel = connection.socket.channel("user", { limit: pageSize });
    this.channel.on("thread_changed", (change: ThreadChange) => this.apply(change));
    this.channel.on("threads_reset", () => this.load());
  }

  start(): void {
    // phoenix calls these again after each rejoin.
    this.channel
      .join()
      .receive("ok", (page: ThreadPage) => this.take(page))
      .receive("error", () => this.fail());
  }

  showMore(): Promise<void> {
    const before = this.next;
    if (before === null) return Promise.resolve();
    return this.ask({ limit: pageSize, before }, (page) => {
      const held = new Set(this.threads.map((thread) => thread.id));
      this.threads = [...this.threads, ...page.threads.filter((thread) => !held.has(thread.id)).map(called)];
      this.next = page.next;
      this.older = true;
      this.changed();
    });
  }

  /** Takes a thread off the list before the server tells of it. */
  remove(id: string): void {
    this.threads = this.threads.filter((thread) => thread.id !== id);
    this.changed();
  }

  /** Reads the first page anew. */
  private load(): void {
    void this.ask({ limit: pageSize }, (page) => this.take(page));
  }

  private ask(request: object, use: (page: ThreadPage) => void): Promise<void> {
    return new Promise((resolve) => {
      const done = (then: () => void) => {
        then();
        resolve();
      };
      this.channel
        .push("list", request)
        .receive("ok", (page: ThreadPage) => done(() => use(page)))
        .receive("error", () => done(() => this.fail()))
        .receive("timeout", () => done(() => this.fail()));
    });
  }

  private fail(): void {
    this.failed = this.loaded = true;
    this.changed();
  }

  /** Puts a fresh first page in front of the older threads that are held. */
  private take(page: ThreadPage): void {
    const fresh = new Set(page.threads.map((thread) => thread.id));
    const end = page.threads.at(-1)?.activity ?? "";
    const behind = (thread: ThreadSummary) => !fresh.has(thread.id) && Date.parse(thread.activity) <= Date.parse(end);
    const older = this.older ? this.threads.filter(behind) : [];
    this.threads = [...page.threads.map(called), ...older];
    if (!this.older || page.next === null) this.next = page.next;
    this.loaded = true;
    this.failed = false;
    this.changed();
  }

  /** Takes one change. One that is older than what the list has says nothing new. */
  private apply({ change, thread }: ThreadChange): void {
    const known = this.threads.find((held) => held.id === thread.id)?.revision ?? this.deleted.get(thread.id) ?? 0;
    if (thread.revision <= known) return;
    const others = this.threads.filter((held) => held.id !== thread.id);
    if (change === "deleted") this.deleted.set(thread.id, thread.revision);
    const shown = change !== "deleted" && !thread.archived && !this.beyond(thread);
    this.threads = shown ? inOrder([...others, called(thread)]) : others;
    this.changed();
  }

  /** Whether a thread is on a page that is not held. */
  private beyond(thread: ThreadSummary): boolean {
    const last = this.threads.at(-1);
    return this.next !== null && last !== undefined && Date.parse(thread.activity) < Date.parse(last.activity);
  }
}

/** A thread by the name that it was given. */
function called(thread: ThreadSummary): ThreadSummary {
  return thread.name ? { ...thread, title: thread.name } : thread;
}

function inOrder(threads: ThreadSummary[]): ThreadSummary[] {
  return threads.sort((a, b) => Date.parse(b.activity) - Date.parse(a.activity));
}
