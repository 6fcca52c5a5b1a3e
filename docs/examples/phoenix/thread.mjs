// One thread as a value that a view can show, for React, Vue, Svelte, or none of them. It needs a Socket of phoenix.js:
//
//   const thread = openThread(socket, "t1", ({ messages, running }) => render(messages, running))
//   thread.run([{ id: crypto.randomUUID(), role: "user", content: "Hello" }])
//   thread.stop()
//   thread.close()
export function openThread(socket, id, show) {
  let after // the cursor: where this view is
  let running = false
  let runs = new Map() // run id -> message id -> {id, role, content}
  const messages = () => [...runs.values()].flatMap((run) => [...run.values()])
  const changed = () => show({ messages: messages(), running })

  const take = (runId, event) => {
    if (!runs.has(runId)) runs.set(runId, new Map())
    const run = runs.get(runId)
    if (event.type === "RUN_STARTED") running = true
    if (event.type === "RUN_FINISHED" || event.type === "RUN_ERROR") running = false
    if (event.type === "TEXT_MESSAGE_START" && !run.has(event.messageId))
      run.set(event.messageId, { id: event.messageId, role: event.role ?? "assistant", content: "" })
    if (event.type === "TEXT_MESSAGE_CONTENT") run.get(event.messageId).content += event.delta
  }

  // A function, so that each rejoin of phoenix says where the view is then. What was asked comes as events, too.
  const channel = socket.channel(`thread:${id}`, () => ({ input: "events", ...(after && { after }) }))
  channel.on("ag_ui_events", ({ runId, to, events }) => {
    for (const event of events) take(runId, event)
    after = to
    changed()
  })
  channel.on("reset", ({ runId, from }) => {
    if (runId === null) runs = new Map()
    else runs.delete(runId) // it follows again from its beginning
    after = from
    changed()
  })
  channel.on("caught_up", (status) => {
    running = status.running
    changed()
  })
  channel.join()

  const push = (event, payload) =>
    new Promise((resolve, reject) => {
      channel.push(event, payload).receive("ok", resolve).receive("error", reject).receive("timeout", () => reject(event))
    })
  return {
    // The agent gets the whole conversation; the run id makes it harmless to ask twice.
    run: (asked) => push("run", { runId: crypto.randomUUID(), messages: [...messages(), ...asked] }),
    stop: () => push("stop", {}),
    close: () => channel.leave(),
  }
}
