// Two views of one thread:
//
//   npm i phoenix ws && node client.mjs [http://127.0.0.1:8080]
import WebSocket from "ws" // browsers have one
import { Socket } from "phoenix"
import { openThread } from "./thread.mjs"

const server = process.argv[2] ?? "http://127.0.0.1:8080"
const connect = () => {
  const socket = new Socket(server.replace("http", "ws") + "/socket", { transport: WebSocket })
  socket.connect()
  return socket
}

const id = `phoenix-${Date.now()}`
const text = ({ messages }) => messages.map((m) => `${m.role}: ${m.content}`).join("\n")

// The first view asks. The second comes in mid answer, and loses its connection as soon as it sees some of it.
let asked, watched
const ended = (view) => view && !view.running && view.messages.at(-1)?.role === "assistant"
const done = new Promise((resolve) => {
  const look = () => ended(asked) && ended(watched) && resolve()
  const thread = openThread(connect(), id, (view) => {
    asked = view
    if (view.messages.length === 2 && !watched) {
      watched = {}
      const socket = connect()
      let cut = false
      openThread(socket, id, (other) => {
        watched = other
        if (other.running && !cut) socket.conn.close(4000, "as if the network was gone")
        cut ||= other.running
        look()
      })
    }
    look()
  })
  thread.run([{ id: "m1", role: "user", content: "Write at length" }])
})
await done
console.log(text(asked))
if (text(asked) !== text(watched)) throw new Error(`the second view has\n${text(watched)}`)
process.exit(0)
