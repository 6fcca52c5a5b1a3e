// Statements 13 to 16: how the client chooses its mode.

import assert from "node:assert/strict";
import { createServer, request as ask } from "node:http";
import { counts, counted, text } from "./script.mjs";

const agents = ["default", "other"];

export const s13 = async (w) => {
  const { core } = await w.chat();
  assert.equal(core.runtimeMode, "intelligence");
  assert.deepEqual(Object.keys(core.agents).sort(), agents);
  const info = await w.json("GET", "/api/copilotkit/info");
  assert.equal(info.intelligence.wsUrl, `${w.url.replace("http", "ws")}/client`);
  assert.equal(info.licenseStatus, undefined);
  assert.equal(info.runtimeEntitlements, undefined);
};

export const s14 = async (w) => {
  const chat = await w.chat({ path: "/api/copilotkit-sse", thread: w.thread() });
  assert.equal(chat.core.runtimeMode, "sse");
  assert.deepEqual(Object.keys(chat.core.agents).sort(), agents);
  const runId = w.run();
  await chat.run(text(counts(3)), { runId });
  assert.equal(chat.said(runId), counted(3));
  assert.equal(w.sockets().length, 0);
};

// withoutREST stands before the server and answers 404 to whatever is not a POST of the endpoint itself.
const withoutREST = async (w) => {
  const { url } = w;
  const server = createServer((request, response) => {
    if (request.method !== "POST" || request.url !== "/api/copilotkit") {
      response.writeHead(404).end("there is only one endpoint here");
      return;
    }
    const onward = ask(url + request.url, { method: "POST", headers: { ...request.headers, host: new URL(url).host } }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    request.pipe(onward);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  w.open.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${server.address().port}`;
};

export const s15 = async (w) => {
  const direct = w.url;
  w.url = await withoutREST(w);
  const thread = w.thread();
  const chat = await w.chat({ thread });
  assert.equal(chat.core.runtimeTransport, "single");
  assert.equal(chat.core.runtimeMode, "intelligence");
  w.url = direct;
  const runId = w.run();
  await chat.run(text(counts(3)), { runId });
  assert.equal(chat.said(runId), counted(3));
  chat.fine();
};

// The stores are away, which the Go side sees to.
export const s16 = async (w) => {
  const measured = {};
  for (const path of ["/api/copilotkit/info", "/api/copilotkit-sse/info"]) {
    const began = performance.now();
    const response = await w.request("GET", path);
    measured[path] = performance.now() - began;
    assert.equal(response.status, 200);
    assert.deepEqual(Object.keys((await response.json()).agents).sort(), agents);
    assert.ok(measured[path] < 5000, `it took ${measured[path]} ms`);
  }
  const chat = await w.chat();
  chat.fine();
  return { measured };
};
