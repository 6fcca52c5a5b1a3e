import { StrictMode, useState, useSyncExternalStore } from "react";
import { createRoot } from "react-dom/client";
import { CopilotChat, CopilotKitProvider, useThreads, type Thread } from "@copilotkit/react-core/v2";
import "@copilotkit/react-core/v2/styles.css";
import "./style.css";

const runtimeUrl = import.meta.env.VITE_RUNTIME_URL ?? "/api/copilotkit";
const agentId = import.meta.env.VITE_AGENT ?? "demo";

// The thread is named by the address, so that a reload, a bookmark and a second tab show the same one.
const open = (threadId: string) => { location.hash = encodeURIComponent(threadId); };
const opened = () => decodeURIComponent(location.hash.slice(1));
if (!opened()) history.replaceState(null, "", `#${crypto.randomUUID()}`);

const onAddressChange = (changed: () => void) => {
  addEventListener("hashchange", changed);
  return () => removeEventListener("hashchange", changed);
};

function App() {
  const threadId = useSyncExternalStore(onAddressChange, opened);
  const [failure, setFailure] = useState(""); // the chat itself does not show why a run failed
  return (
    <CopilotKitProvider runtimeUrl={runtimeUrl} agentId={agentId} enableInspector={false}
      onError={({ error }) => setFailure(error.message)}>
      <ThreadList current={threadId} />
      <main>
        {failure && <p role="alert">{failure} <button onClick={() => setFailure("")}>OK</button></p>}
        {/* The key gives each thread a chat of its own; without it a draft would wander from one to the next. */}
        <section><CopilotChat key={threadId} threadId={threadId} /></section>
      </main>
    </CopilotKitProvider>
  );
}

function ThreadList({ current }: { current: string }) {
  const { threads, isLoading, listError, renameThread, deleteThread } = useThreads({ agentId });

  // What goes wrong with these is in listError.
  const rename = async (thread: Thread) => {
    const name = prompt("Name of this thread", thread.name ?? "");
    if (name) await renameThread(thread.id, name).catch(() => {});
  };
  const remove = async (thread: Thread) => {
    if (!confirm(`Delete "${thread.name ?? "Untitled"}"?`)) return;
    const gone = await deleteThread(thread.id).then(() => true, () => false);
    if (gone && thread.id === current) open(crypto.randomUUID());
  };

  return (
    <nav aria-label="Threads">
      <button className="new" onClick={() => open(crypto.randomUUID())}>New thread</button>
      {listError && <p role="alert">{listError.message}</p>}
      {!isLoading && threads.length === 0 && <p>Threads appear here.</p>}
      <ul>
        {threads.map((thread) => (
          <li key={thread.id} data-thread={thread.id} aria-current={thread.id === current}>
            <a href={`#${encodeURIComponent(thread.id)}`}>{thread.name ?? "Untitled"}</a>
            <button title="Rename" onClick={() => void rename(thread)}>✎</button>
            <button title="Delete" onClick={() => void remove(thread)}>✕</button>
          </li>
        ))}
      </ul>
    </nav>
  );
}

createRoot(document.getElementById("root")!).render(<StrictMode><App /></StrictMode>);
