// A page whose runs outlive it, with AG-UI's HttpAgent:
//
//   npm i @ag-ui/client && node client.mjs [http://127.0.0.1:8080]
import { HttpAgent, runHttpRequest, transformHttpEventStream } from "@ag-ui/client"

const server = process.argv[2] ?? "http://127.0.0.1:8080"

class DurableAgent extends HttpAgent {
  // What connectAgent() shows: all that the thread holds, and what goes on in it until nothing does.
  connect({ threadId }) {
    const events = `${server}/agui/threads/${encodeURIComponent(threadId)}/events?until=idle`
    return transformHttpEventStream(runHttpRequest(() => fetch(events, { signal: this.abortController.signal })))
  }
}

const threadId = `agui-http-${Date.now()}`
const open = () => new DurableAgent({ url: `${server}/agui/demo`, threadId })

// A person asks, and closes the page in mid answer.
const page = open()
page.addMessage({ id: "m1", role: "user", content: "Write at length" })
let pieces = 0
await page.runAgent(
  { runId: "r1" },
  { onTextMessageContentEvent: () => (++pieces === 20 ? page.abortRun() : undefined) },
)
const before = page.messages.at(-1).content
console.log(`left after ${before.length} characters: ${before}`)

// The page is opened again. It knows nothing but the name of the thread.
const again = open()
await again.connectAgent()
const after = again.messages.at(-1).content
console.log(`came back to ${after.length} characters: ${after}`)
if (!after.startsWith(before) || after.length === before.length) throw new Error("the answer did not go on")
