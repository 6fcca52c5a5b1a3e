// A server that speaks OpenAI's API, made of the unmodified @copilotkit/aimock package. What it answers depends on the last
// message of the user. It takes one key only, and reports each request that it answers, and each that is closed early.

import { createServer } from "@copilotkit/aimock";
import { fail, report } from "./report.mjs";

const words = (n) => Array.from({ length: n }, (_, i) => `wörd${i} `).join("");
const question = (request) => {
  const content = request.messages.findLast((m) => m.role === "user")?.content;
  return typeof content === "string" ? content : content?.find((p) => p.type === "text")?.text;
};
const answered = (request) => request.messages.at(-1).role === "tool";

// on answers a question in this way; a function makes the answer of the request.
const on = (text, response, options = {}) => ({
  match: { endpoint: "chat", predicate: (request) => question(request) === text },
  response: (request) => {
    report("asked", { body: request });
    return typeof response === "function" ? response(request) : response;
  },
  ...options,
});

let refusals = 0;
const limit = { status: 429, error: { message: "Rate limit reached", type: "tokens", code: "rate_limit_exceeded" } };
const fixtures = [
  on("story", { content: words(300), reasoning: "They want a story.", usage: { prompt_tokens: 11, completion_tokens: 22 } }),
  on("on and on", { content: words(100_000) }, { latency: 5 }),
  on("slow", { content: "At last." }, { chaos: { latencyMs: 1500 } }),
  on("weather", (request) => answered(request)
    ? { content: request.messages.filter((m) => m.role === "tool").map((m) => m.content).join(", ") }
    : {
        content: "Let me see.",
        toolCalls: [
          { id: "call_a", name: "weather", arguments: '{"city":"Lisbon"}' },
          { id: "call_b", name: "weather", arguments: '{"city":"Oslo"}' },
        ],
      }),
  on("limit for long", { ...limit, retryAfter: 60 }),
  on("limit for now", () => (refusals++ === 0 ? { ...limit, retryAfter: 0 } : { content: "Now." })),
  on("failure", { status: 500, error: { message: "The server had an error", type: "server_error" } }),
  on("too long", { status: 400, error: { message: "Too many tokens", type: "invalid_request_error", code: "context_length_exceeded" } }),
  on("no model", { status: 404, error: { message: "The model does not exist", code: "model_not_found" } }),
  on("malformed", { content: "x" }, { chaos: { malformedRate: 1 } }),
  on("disconnect", { content: "x" }, { chaos: { disconnectRate: 1 } }),
  on("cut", { content: words(300) }, { truncateAfterChunks: 20, latency: 2 }),
  on("short", { content: "Half of", finishReason: "length" }),
];

try {
  const { server, url } = await createServer(fixtures, { port: 0, chunkSize: 7, auth: { apiKeys: ["test-key"] } });
  server.prependListener("request", (request, response) => {
    response.on("close", () => {
      if (!response.writableFinished) report("closed", { url: request.url });
    });
  });
  report("listening", { url });
} catch (error) {
  fail(error);
}
