import { Socket, type SocketConnectOption } from "phoenix";

/** How the socket stands: open; trying to get open again; or failing for a while, with the browser or the server offline. */
export type Link = "connected" | "reconnecting" | "offline";

const patience = 15_000; // ms of failing until the page says "offline"

/** The page's one socket. Topics come and go on it; phoenix reconnects it and joins them again. */
export class Connection {
  readonly socket: Socket;
  /** Whether the socket was ever open: before, the page is connecting, not reconnecting. */
  opened = false;

  private open = false;
  private overdue = false;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private listeners = new Set<() => void>();

  constructor(options: Partial<SocketConnectOption> = {}) {
    this.socket = new Socket("/socket", { heartbeatIntervalMs: 15_000, ...options });
    this.socket.onOpen(() => this.turned(true));
    this.socket.onClose(() => this.turned(false));
    this.socket.onError(() => this.turned(false));
  }

  get link(): Link {
    if (this.open) return "connected";
    return this.overdue || !navigator.onLine ? "offline" : "reconnecting";
  }

  connect(): void {
    this.turned(false);
    this.socket.connect();
    window.addEventListener("online", () => this.reconnect());
    window.addEventListener("offline", () => this.notify());
  }

  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** The browser is back on a network: try at once, without waiting out the back-off. */
  private reconnect(): void {
    if (!this.socket.isConnected()) this.socket.disconnect(() => this.socket.connect());
    this.notify();
  }

  private turned(open: boolean): void {
    this.open = open;
    if (open) {
      this.opened = true;
      this.overdue = false;
      clearTimeout(this.timer);
      this.timer = undefined;
    } else {
      this.timer ??= setTimeout(() => {
        this.overdue = true;
        this.notify();
      }, patience);
    }
    this.notify();
  }

  private notify(): void {
    for (const listener of this.listeners) listener();
  }
}
