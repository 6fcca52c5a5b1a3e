// An agent made of the unmodified @ag-ui/core and @ag-ui/encoder packages. It tells a story of a thousand words when the
// last message is "story", and one without end otherwise; it reports each request, and when one is closed early.

import { createServer } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { EventType } from "@ag-ui/core";
import { EventSchemas, RunAgentInputSchema } from "@ag-ui/core/schemas";
import { EventEncoder } from "@ag-ui/encoder";
import { fail, report } from "./report.mjs";

async function* tell(input) {
  const { threadId, runId } = input;
  const messageId = `story-${runId}`;
  yield { type: EventType.RUN_STARTED, threadId, runId };
  yield { type: EventType.STATE_SNAPSHOT, snapshot: { words: 0 } };
  yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" };
  const words = input.messages.at(-1)?.content === "story" ? 1000 : Infinity;
  for (let i = 0; i < words; i++) {
    yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: `wörd${i} ` };
    if (i % 10 === 0) await pause(2);
  }
  yield { type: EventType.TEXT_MESSAGE_END, messageId };
  yield { type: EventType.RUN_FINISHED, threadId, runId, outcome: { type: "success" } };
}

const read = async (request) => {
  let body = "";
  for await (const chunk of request.setEncoding("utf8")) body += chunk;
  return RunAgentInputSchema.parse(JSON.parse(body));
};

const server = createServer(async (request, response) => {
  try {
    const input = await read(request);
    report("asked", { runId: input.runId, messages: input.messages, accept: request.headers.accept });
    let open = true;
    response.on("close", () => {
      open = false;
      if (!response.writableFinished) report("closed", { runId: input.runId });
    });
    const encoder = new EventEncoder({ accept: request.headers.accept });
    response.writeHead(200, { "Content-Type": encoder.getContentType() });
    for await (const event of tell(input)) {
      if (!open) return;
      response.write(encoder.encode(EventSchemas.parse(event)));
    }
    response.end();
  } catch (error) {
    fail(error);
  }
});

server.listen(0, "127.0.0.1", () => report("listening", { url: `http://127.0.0.1:${server.address().port}/` }));
