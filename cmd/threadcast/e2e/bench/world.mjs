// What a statement has: a server over a line of its own, a user of its own, and clients, all of which end with it.

import assert from "node:assert/strict";
import { packages } from "./clients.mjs";
import { script } from "./script.mjs";
import { Tapped, sockets } from "./tap.mjs";

let worlds = 0;

const post = async (url, body, headers = {}) =>
  fetch(url, { method: "POST", headers: { "Content-Type": "application/json", ...headers }, body: JSON.stringify(body) });

// until waits until the value is truthy, and returns it.
export const until = async (what, value, patience = 20_000) => {
  const late = performance.now() + patience;
  for (;;) {
    const got = await value();
    if (got) return got;
    if (performance.now() > late) throw new Error(`not within ${patience} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
};

// outcome is what a promise comes to, within the time that a statement has.
export const within = (what, promise, patience = 20_000) => {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${patience} ms: ${what}`)), patience);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
};

export class World {
  constructor({ statement, line, url, desk }) {
    this.tag = `${statement}-${++worlds}`;
    this.line = line;
    this.url = url;
    this.runtime = `${url}/api/copilotkit`;
    this.deskURL = desk;
    this.user = `user-${this.tag}`;
    this.remarks = []; // shown if the statement does not hold
    this.open = []; // functions that close
    this.threads = new Set();
    this.runs = 0;
  }

  thread(name = "t") {
    const thread = `${name}-${this.tag}`;
    this.threads.add(thread);
    return thread;
  }

  gate(name = "gate") {
    return `${name}-${this.tag}`;
  }

  run(name = "r") {
    return `${name}${++this.runs}-${this.tag}`;
  }

  get headers() {
    return { "X-User": this.user };
  }

  // desk asks the Go side for something; see bench_desk_test.go.
  async desk(what, more = {}) {
    const response = await post(`${this.deskURL}/${what}`, { line: this.line, ...more });
    if (!response.ok) throw new Error(await response.text());
    return response.json();
  }

  release(gate = this.gate()) {
    return this.desk("release", { gate });
  }

  // request is a request of a page of this user.
  async request(method, path, body, more = {}) {
    return fetch(this.url + path, {
      method,
      headers: { ...this.headers, ...(body === undefined ? {} : { "Content-Type": "application/json" }), ...more.headers },
      body: body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body),
      signal: more.signal,
    });
  }

  async json(method, path, body) {
    const response = await this.request(method, path, body);
    assert.ok(response.ok, `${method} ${path} is answered ${response.status}`);
    return response.json();
  }

  // input is a RunAgentInput with one message of the user.
  input(thread, runId, steps) {
    const messages = [{ id: `u-${runId}`, role: "user", content: script(steps) }];
    return { threadId: thread, runId, state: {}, messages, tools: [], context: [], forwardedProps: {} };
  }

  // credentials starts a run as CopilotKit's client does, and returns the answer.
  async credentials(thread, runId, steps, agent = "default") {
    return this.json("POST", `/api/copilotkit/agent/${agent}/run`, this.input(thread, runId, steps));
  }

  // reconnects asks for credentials to follow a thread.
  async reconnects(thread, lastSeenEventId = null) {
    const input = { threadId: thread, runId: this.run("c"), state: {}, messages: [], tools: [], context: [], forwardedProps: {} };
    return this.request("POST", "/api/copilotkit/agent/default/connect", { ...input, lastSeenEventId });
  }

  // idle waits until nothing runs on a thread, and returns what the server's own API says of it.
  async idle(thread) {
    return until(`${thread} is idle`, async () => {
      const info = await this.json("GET", `/api/threads/${thread}`);
      return info.status.running || info.runs.some((run) => !run.end) ? null : info;
    });
  }

  // stored are the events of a thread as the server's own API has them.
  async stored(thread) {
    const { batches } = await this.json("GET", `/api/threads/${thread}/events?limit=10000&replay=raw`);
    return batches.flatMap((b) => b.events);
  }

  // raw opens a WebSocket without phoenix. It fails if the server refuses.
  async raw(path, protocols) {
    const socket = new Tapped(this.url.replace("http", "ws") + path, protocols, { headers: this.headers });
    this.open.push(() => socket.close());
    await within(`${path} opens`, new Promise((resolve, reject) => {
      socket.once("open", resolve);
      socket.once("error", reject);
    }));
    return socket;
  }

  // refusal is the status with which a handshake is refused.
  async refusal(path, options) {
    const socket = new Tapped(this.url.replace("http", "ws") + path, undefined, { headers: this.headers, ...options });
    this.open.push(() => socket.terminate());
    const status = await within(`${path} is answered`, new Promise((resolve) => {
      socket.once("open", () => resolve(101));
      socket.once("error", (error) => resolve(Number(/response: (\d+)/.exec(error.message)?.[1] ?? 0)));
    }));
    return status;
  }

  // joinPath is where the socket of credentials is.
  joinPath({ joinToken }) {
    return `/client/websocket?join_token=${encodeURIComponent(joinToken)}&vsn=2.0.0`;
  }

  // phoenix opens a socket of the phoenix package.
  phoenix(path, options = {}) {
    const { headers } = this;
    const transport = class extends Tapped { // as what stands before the server and says who calls
      constructor(url, protocols) {
        super(url, protocols, { headers });
      }
    };
    const socket = new packages.phoenix.Socket(this.url.replace("http", "ws") + path, { transport, ...options });
    this.open.push(() => socket.disconnect());
    socket.connect();
    return socket;
  }

  // chat opens a page with one chat.
  chat(options) {
    return Chat.open(this, options);
  }

  // sockets are those of this statement that are for this token, or for any.
  sockets(token) {
    return sockets.filter((s) => s.url.startsWith(this.url.replace("http", "ws")) && (!token || s.url.includes(encodeURIComponent(token))));
  }

  // close ends the clients, and what a statement that does not hold has left running.
  async close(failed) {
    for (const close of this.open.reverse()) {
      try {
        close();
      } catch (error) {
        this.remarks.push(String(error));
      }
    }
    if (!failed) return;
    for (const thread of this.threads) await this.request("POST", `/api/threads/${encodeURIComponent(thread)}/stop`, {}).catch(() => {});
  }
}

// Chat is a page with CopilotKitCore and one agent of it.
export class Chat {
  static async open(world, { thread, path = "/api/copilotkit", agent = "default", user = world.user, transport = "auto" } = {}) {
    const chat = new Chat();
    chat.world = world;
    chat.errors = []; // {code, message}
    chat.events = []; // what the agent's subscribers got
    const { CopilotKitCore } = packages.core;
    chat.core = new CopilotKitCore({ runtimeUrl: world.url + path, runtimeTransport: transport, headers: { "X-User": user } });
    chat.core.subscribe({
      onError: ({ code, error }) => {
        chat.errors.push({ code, message: error.message });
        world.remarks.push(`${code}: ${error.message}`);
      },
    });
    await until("the client is connected", () => chat.core.runtimeConnectionStatus === "connected");
    chat.agent = chat.core.getAgent(agent);
    assert.ok(chat.agent, `there is no agent ${agent}`);
    chat.agent.threadId = thread;
    chat.agent.subscribe({ onEvent: ({ event }) => void chat.events.push(event) });
    world.open.push(() => chat.agent.detachActiveRun());
    return chat;
  }

  // run says something, and comes back when the run is over.
  run(steps, { runId = this.world.run(), ...more } = {}) {
    this.agent.addMessage({ id: `u-${runId}`, role: "user", content: script(steps) });
    return within(`run ${runId}`, this.core.runAgent({ agent: this.agent, runId, ...more }), 40_000);
  }

  connect() {
    return within("connect", this.core.connectAgent({ agent: this.agent }), 40_000);
  }

  stop() {
    this.core.stopAgent({ agent: this.agent });
  }

  // said is the text of a run's answer.
  said(runId) {
    return this.agent.messages.find((m) => m.id === `m-${runId}`)?.content ?? "";
  }

  roles() {
    return this.agent.messages.map((m) => m.role).join(" ");
  }

  types() {
    return this.events.map((e) => e.type);
  }

  // fine fails if the page showed an error.
  fine() {
    assert.deepEqual(this.errors, []);
  }
}

export const newWorld = (options) => new World(options);
