import { listThreads, type ThreadPage, type ThreadSummary } from "./api";

const interval = 5_000; // ms between polls while the page is visible
const pageSize = 50;

/** The list of threads. Its first page is polled gently while somebody looks; older pages come on request. */
export class ThreadList {
  threads: ThreadSummary[] = [];
  loaded = false;
  failed = false;
  /** Where the page after the last one begins; null if there is none. */
  next: string | null = null;

  private older = false; // whether more than the first page is held
  private timer: ReturnType<typeof setTimeout> | undefined;
  private seen = "";
  private asking = false;
  private again = false;

  constructor(private changed: () => void) {}

  start(): void {
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "visible") void this.refresh();
    });
    void this.refresh();
  }

  async showMore(): Promise<void> {
    if (this.next === null) return;
    try {
      const page = await listThreads(pageSize, this.next);
      const held = new Set(this.threads.map((thread) => thread.id));
      this.threads = [...this.threads, ...page.threads.filter((thread) => !held.has(thread.id))];
      this.next = page.next;
      this.older = true;
    } catch {
      this.failed = true;
    }
    this.changed();
  }

  /** Takes a thread off the list before the server has been asked again. */
  remove(id: string): void {
    this.threads = this.threads.filter((thread) => thread.id !== id);
    this.seen = "";
    this.changed();
  }

  /** Asks now, and starts the interval anew. */
  async refresh(): Promise<void> {
    if (this.asking) {
      this.again = true;
      return;
    }
    this.asking = true;
    clearTimeout(this.timer);
    await this.load();
    this.asking = false;
    const soon = this.again;
    this.again = false;
    if (soon) return this.refresh();
    this.timer = setTimeout(() => {
      if (document.visibilityState === "visible") void this.refresh();
    }, interval);
  }

  private async load(): Promise<void> {
    const before = `${this.loaded} ${this.failed} ${this.seen}`;
    try {
      this.take(await listThreads(pageSize));
      this.failed = false;
    } catch {
      this.failed = true;
    }
    this.loaded = true;
    if (before !== `${this.loaded} ${this.failed} ${this.seen}`) this.changed();
  }

  /** Puts a fresh first page in front of the older threads that are held. */
  private take(page: ThreadPage): void {
    this.seen = JSON.stringify(page);
    const fresh = new Set(page.threads.map((thread) => thread.id));
    const end = page.threads.at(-1)?.activity ?? "";
    const behind = (thread: ThreadSummary) => !fresh.has(thread.id) && Date.parse(thread.activity) <= Date.parse(end);
    const older = this.older ? this.threads.filter(behind) : [];
    this.threads = [...page.threads, ...older];
    if (!this.older || page.next === null) this.next = page.next;
  }
}
