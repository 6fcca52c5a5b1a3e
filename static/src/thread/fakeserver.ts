// A server for tests: sockets that phoenix opens as it would real ones, and the frames that went over them.

type Frame = [joinRef: string | null, ref: string | null, topic: string, event: string, payload: Record<string, unknown>];

/** One end of a connection, in place of the browser's WebSocket. */
export class FakeSocket {
  readyState = 0;
  bufferedAmount = 0;
  onopen: (() => void) | undefined;
  onclose: ((event: { code: number }) => void) | undefined;
  onerror: ((event: unknown) => void) | undefined;
  onmessage: ((event: { data: string }) => void) | undefined;

  constructor(readonly server: FakeServer, readonly url: string) {
    queueMicrotask(() => (server.up ? this.open() : this.drop()));
  }

  private open(): void {
    this.readyState = 1;
    this.server.socket = this;
    this.onopen?.();
  }

  /** Ends the connection as a broken network does. */
  drop(): void {
    if (this.readyState === 3) return;
    this.readyState = 3;
    this.onclose?.({ code: 1006 });
  }

  close(): void {
    this.drop();
  }

  send(text: string): void {
    const frame = JSON.parse(text) as Frame;
    if (frame[2] !== "phoenix") this.server.frames.push(frame);
    else this.receive([null, frame[1], "phoenix", "phx_reply", { status: "ok", response: {} }]);
  }

  receive(frame: Frame): void {
    this.onmessage?.({ data: JSON.stringify(frame) });
  }
}

export class FakeServer {
  up = true;
  frames: Frame[] = [];
  socket!: FakeSocket;

  /** What phoenix takes as its transport. */
  get transport(): new (endpoint: string) => object {
    const server = this;
    return class extends FakeSocket {
      constructor(endpoint: string) {
        super(server, endpoint);
      }
    };
  }

  /** The payloads of the frames with that event on topics that begin so, oldest first. */
  sent(event: string, topic = "thread:"): Record<string, unknown>[] {
    return this.frames.filter((frame) => frame[3] === event && frame[2].startsWith(topic)).map((frame) => frame[4]);
  }

  private latest(event: string, topic: string): Frame {
    return this.frames.findLast((frame) => frame[3] === event && frame[2].startsWith(topic))!;
  }

  /** Answers the latest frame with that event on a topic that begins so. */
  reply(event: string, response: unknown, status = "ok", topic = "thread:"): void {
    const frame = this.latest(event, topic);
    this.socket.receive([frame[0], frame[1], frame[2], "phx_reply", { status, response }]);
  }

  /** Sends to the latest membership of the topic that was joined last, of those that begin so. */
  push(event: string, payload: Record<string, unknown>, topic = "thread:"): void {
    const join = this.latest("phx_join", topic);
    this.socket.receive([join[0], null, join[2], event, payload]);
  }
}
