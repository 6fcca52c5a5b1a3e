// What CopilotKit's React components do, without React:
//
//   npm i @copilotkit/core ws && node client.mjs [http://127.0.0.1:8080]
//
// In a browser the first three lines are not needed.
import WebSocket from "ws"
globalThis.WebSocket ??= WebSocket
globalThis.window ??= globalThis
const { CopilotKitCore } = await import("@copilotkit/core")

const server = process.argv[2] ?? "http://127.0.0.1:8080"

// open is a page: <CopilotKit runtimeUrl="..."> with a chat for this agent and this thread.
const open = async (threadId) => {
  const core = new CopilotKitCore({ runtimeUrl: `${server}/api/copilotkit` })
  core.subscribe({ onError: ({ error }) => console.error(error.message) })
  await new Promise((resolve) => {
    const look = () => (core.runtimeConnectionStatus === "connected" ? resolve() : setTimeout(look, 10))
    look()
  })
  const agent = core.getAgent("demo")
  agent.threadId = threadId
  return { core, agent }
}
const answer = (agent) => agent.messages.findLast((m) => m.role === "assistant")?.content ?? ""

const threadId = `copilotkit-${Date.now()}`
const page = await open(threadId)
page.agent.addMessage({ id: "m1", role: "user", content: "Write at length" })
const run = page.core.runAgent({ agent: page.agent })
await new Promise((resolve) => {
  const look = () => (answer(page.agent).length > 100 ? resolve() : setTimeout(look, 10))
  look()
})

// A second page on the thread, in mid answer: it shows what was said, follows, and sees the end.
const other = await open(threadId)
await Promise.all([run, other.core.connectAgent({ agent: other.agent })])
console.log(answer(other.agent))
if (answer(page.agent) !== answer(other.agent)) throw new Error("the pages differ")
process.exit(0)
