// The unmodified HttpAgent of @ag-ui/client on threadcast's AG-UI over HTTP:
//
//   node http-agent.mjs HTTP-URL OTHER-HTTP-URL THREAD
//
// It starts a run of the agent "story" at the first address and aborts its request in mid answer, as a page does that is
// closed. Then, at the other address, it takes the thread up again, and finds the run by asking for it once more. Whatever the
// package warns of is a failure.

import { HttpAgent, runHttpRequest, transformHttpEventStream } from "@ag-ui/client";
import { fail, report } from "./report.mjs";

for (const method of ["warn", "error"]) console[method] = (...what) => fail(`console.${method}: ${what.map(String).join(" ")}`);

const [url, other, threadId] = process.argv.slice(2);

class Durable extends HttpAgent {
  connect(input) {
    const events = `${other}/agui/threads/${encodeURIComponent(input.threadId)}/events?until=idle`;
    return transformHttpEventStream(runHttpRequest(() => fetch(events, { signal: this.abortController.signal })));
  }
}

const asked = { id: "u1", role: "user", content: "Tell me a story" };
const said = (agent) => agent.messages.at(-1).content;

const page = new Durable({ url: `${url}/agui/story`, threadId, initialMessages: [asked] });
let pieces = 0;
let failure;
await page
  .runAgent({ runId: "first" }, { onTextMessageContentEvent: () => (++pieces === 50 ? page.abortRun() : undefined) })
  .catch((error) => (failure = error));
if (failure) fail(failure);
report("left", { body: said(page) });

const again = new Durable({ url: `${other}/agui/story`, threadId });
await again.connectAgent();
report("back", { body: again.messages });

const types = [];
const retry = new HttpAgent({ url: `${other}/agui/story`, threadId, initialMessages: [asked] });
await retry.runAgent({ runId: "first" }, { onEvent: ({ event }) => void types.push(event.type) });
report("found", { body: retry.messages, n: types.length, name: types.at(-1) });
