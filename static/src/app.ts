import { deleteThread, listAgents, type Agent, type ThreadSummary } from "./api";
import { plainText, type ResumeEntry } from "./agui/events";
import { newId } from "./id";
import { Connection } from "./thread/connection";
import { ThreadSession } from "./thread/session";
import { ThreadList } from "./threads";

const chosenKey = "threadcast.agent";
const cheap = 12; // ms for a drawing that fits into a frame
const longestPause = 500; // ms between two drawings

/** What the page holds: the socket, the list of threads, the agents, and the thread that is open. */
export class App {
  readonly list: ThreadList;
  agents: Agent[] = [];
  session!: ThreadSession;
  /** Whether the open thread has a place in the address bar; a new one gets it with its first message. */
  isNew = false;

  private chosen: string | undefined;
  private drafts = new Map<string, string>();
  private listeners = new Set<() => void>();
  private frame: number | undefined;
  private cost = 0; // of the last drawing, in ms

  constructor(readonly connection: Connection) {
    this.list = new ThreadList(connection, () => this.schedule());
    this.connection.onChange(() => this.schedule());
  }

  start(): void {
    this.chosen = remembered();
    this.connection.connect();
    this.openFromAddress();
    window.addEventListener("popstate", () => this.openFromAddress());
    this.list.start();
    void this.loadAgents();
  }

  onDraw(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /**
   * Draws with the next frame of the screen, however many changes come until then. When drawing is slow, because an answer
   * is very long or the machine is busy, it is done less often, so that the page keeps answering its reader.
   */
  schedule(): void {
    if (this.frame !== undefined) return;
    const draw = () => this.draw();
    const pause = this.cost > cheap ? Math.min(3 * this.cost, longestPause) : 0;
    // A hidden page gets no frames; its title still has to follow.
    if (document.visibilityState === "hidden") this.frame = window.setTimeout(draw, longestPause);
    else if (pause > 0) this.frame = window.setTimeout(() => requestAnimationFrame(draw), pause);
    else this.frame = requestAnimationFrame(draw);
  }

  private draw(): void {
    this.frame = undefined;
    if (this.session?.held) return; // its end schedules again
    const began = performance.now();
    this.notice();
    for (const listener of this.listeners) listener();
    setTimeout(() => (this.cost = performance.now() - began)); // with layout and paint
  }

  newThread(): void {
    if (this.isNew && this.session.messages.length === 0) return;
    history.pushState(null, "", "/");
    this.openFromAddress();
  }

  openThread(id: string): void {
    if (id === this.session.id) return;
    history.pushState(null, "", address(id));
    this.openFromAddress();
  }

  send(text: string): void {
    const sent = text.trim();
    if (sent === "" || this.session.busy) return;
    if (this.isNew) {
      history.pushState(null, "", address(this.session.id));
      this.isNew = false;
    }
    this.session.send(sent, this.agentId);
  }

  answer(entries: ResumeEntry[]): void {
    // The agent that asked is the one to be answered.
    this.session.resume(entries, this.session.agentId ?? this.summary?.agentId ?? this.agentId);
  }

  again(): void {
    this.session.again(this.agentId);
  }

  async remove(id: string): Promise<void> {
    await deleteThread(id);
    this.list.remove(id);
    this.drafts.delete(id);
    if (id === this.session.id) {
      history.replaceState(null, "", "/");
      this.openFromAddress();
    }
  }

  /** The agent that gets the next message: the one chosen, else the thread's, else the server's default. */
  get agentId(): string | undefined {
    const known = (id: string | null | undefined) => this.agents.find((agent) => agent.id === id)?.id;
    const standard = this.agents.find((agent) => agent.default) ?? this.agents[0];
    const own = this.isNew ? undefined : (known(this.session.agentId) ?? known(this.summary?.agentId));
    return known(this.picked) ?? own ?? known(this.chosen) ?? standard?.id;
  }

  private picked: string | undefined; // for the open thread

  chooseAgent(id: string): void {
    this.picked = this.chosen = id;
    remember(id);
    this.schedule();
  }

  /** What the list says of the open thread. */
  get summary(): ThreadSummary | undefined {
    return this.list.threads.find((thread) => thread.id === this.session.id);
  }

  get title(): string {
    const first = this.session.messages.find((message) => message.role === "user");
    const text = this.summary?.title || plainText(first?.content).trim().split("\n")[0] || "";
    return text.length > 80 ? `${text.slice(0, 79)}…` : text;
  }

  draft(): string {
    return this.drafts.get(this.session.id) ?? "";
  }

  keepDraft(text: string): void {
    this.drafts.set(this.session.id, text);
  }

  private openFromAddress(): void {
    const id = threadInAddress();
    if (id !== undefined && id === this.session?.id) return;
    this.session?.close();
    this.isNew = id === undefined;
    this.picked = undefined;
    this.session = new ThreadSession(this.connection, id ?? newId(), () => this.schedule());
    this.schedule();
  }

  /** Has the title follow the run's state. */
  private notice(): void {
    const busy = this.session.active !== undefined;
    const title = this.isNew ? "" : this.title;
    document.title = `${busy ? "● " : ""}${title ? `${title} – ` : ""}threadcast`;
  }

  private async loadAgents(): Promise<void> {
    try {
      this.agents = await listAgents();
      this.schedule();
    } catch {
      setTimeout(() => void this.loadAgents(), 3_000);
    }
  }
}

function address(id: string): string {
  return `/t/${encodeURIComponent(id)}`;
}

function threadInAddress(): string | undefined {
  const match = /^\/t\/([^/]+)$/.exec(location.pathname);
  if (!match) return undefined;
  try {
    return decodeURIComponent(match[1]!);
  } catch {
    return match[1];
  }
}

// Storage may be forbidden; then the choice lasts as long as the page.
function remembered(): string | undefined {
  try {
    return localStorage.getItem(chosenKey) ?? undefined;
  } catch {
    return undefined;
  }
}

function remember(id: string): void {
  try {
    localStorage.setItem(chosenKey, id);
  } catch {
    return;
  }
}
