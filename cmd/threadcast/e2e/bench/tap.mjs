// Every WebSocket of this process is one of these: it does what that of the package ws does, and keeps what passes. Rules that
// must hold whatever happens are looked at here, for all sockets of all statements.

import WebSocket from "ws";

export const sockets = []; // all that were opened
export const broken = []; // what broke a rule, in words

export class Tapped extends WebSocket {
  constructor(url, protocols, options) {
    super(url, protocols, options);
    this.began = performance.now();
    this.opened = 0; // when
    this.refused = ""; // why it was not opened
    this.closed = null; // {code, here, at}
    this.here = false; // whether this side began to close it
    this.pings = []; // {payload, after} that came: after how many frames
    this.joins = new Map(); // by topic: {ref, payload, accepted}
    this.frames = []; // {event, topic, joinRef, payload, at} that came
    sockets.push(this);
    this.on("open", () => (this.opened = performance.now()));
    this.on("error", (error) => (this.refused ||= this.opened ? "" : error.message));
    this.on("ping", (data) => this.pings.push({ payload: String(data), after: this.frames.length }));
    this.on("message", (data, binary) => this.came(String(data), binary));
    this.on("close", (code) => this.over(code));
  }

  send(data, ...rest) {
    if (typeof data === "string") this.sent(data);
    return super.send(data, ...rest);
  }

  close(...how) {
    this.here = true;
    return super.close(...how);
  }

  sent(text) {
    let frame;
    try {
      frame = JSON.parse(text);
    } catch {
      return; // on purpose
    }
    if (!Array.isArray(frame)) return;
    const [joinRef, ref, topic, event, payload] = frame;
    if (event === "phx_join") this.joins.set(topic, { ref, payload, accepted: false, before: this.joins.get(topic) });
    if (event === "phx_leave" && this.joins.get(topic)?.ref === joinRef) this.joins.get(topic).left = true;
  }

  came(text, binary) {
    const at = performance.now();
    if (binary) return this.breaks("sent a binary message");
    const [joinRef, ref, topic, event, payload] = JSON.parse(text);
    this.frames.push({ joinRef, ref, topic, event, payload, at });
    const join = this.joins.get(topic);
    if (event === "phx_reply") {
      if (join?.ref === ref && payload.status === "ok") join.accepted = true;
      return;
    }
    if (!join && topic !== "phoenix") return this.breaks(`pushed ${event} on ${topic}, which nobody joined`);
    if (event === "phx_close") {
      if (joinRef === join.ref && !join.left) this.breaks(`closed ${topic}`);
      return;
    }
    if (join.accepted && joinRef !== null && joinRef !== join.ref) this.breaks(`pushed ${event} with join_ref ${joinRef}, not ${join.ref}`);
    if (event === "ag_ui_event") this.look(topic, join.payload, payload);
  }

  // look checks an event that a thread topic pushed.
  look(topic, asked, event) {
    const id = event.metadata?.cpki_event_id;
    if (typeof id !== "string" || id === "") this.breaks(`pushed ${event.type} on ${topic} without cpki_event_id`);
    if (asked.stream_mode === "run" && event.runId !== undefined && event.runId !== asked.run_id) {
      this.breaks(`pushed ${event.type} of run ${event.runId} to a member of run ${asked.run_id}`);
    }
  }

  over(code) {
    this.closed = { code, here: this.here, at: performance.now() };
    if (this.here || !this.opened) return;
    if (code === 1000) this.breaks("closed the socket with 1000");
    const theirs = [1002, 1006, 1009, 1012]; // of rubbish, of the network, of a shutdown
    if (!theirs.includes(code) && this.frames.length === 0) this.breaks(`accepted a socket and closed it with ${code}`);
  }

  breaks(rule) {
    broken.push(`${new URL(this.url).pathname}: the server ${rule}`);
  }
}

export const tokenOf = (socket) => new URL(socket.url).searchParams.get("join_token");
