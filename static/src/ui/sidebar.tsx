import { useRef, useState } from "preact/hooks";
import type { App } from "../app";
import type { ThreadSummary } from "../api";
import { Icon, Mark } from "./icons";
import { stateLabel } from "./labels";
import { since } from "./since";

interface SidebarProps {
  app: App;
  onClose: () => void;
}

/** The threads, newest activity first, each with its state. */
export function Sidebar({ app, onClose }: SidebarProps) {
  const [deleting, setDeleting] = useState<ThreadSummary>();
  const rows = withOpenThread(app);
  const { list } = app;
  return (
    <nav class="sidebar" id="threads" aria-label="Threads">
      <div class="brand">
        <Mark />
        <span>threadcast</span>
        <button type="button" class="quiet drawer-close" aria-label="Close the list of threads" onClick={onClose}>
          <Icon name="close" />
        </button>
      </div>
      <button
        type="button" class="button new" data-testid="new-thread"
        onClick={() => {
          app.newThread();
          onClose();
        }}
      >
        <Icon name="plus" size={16} /> New thread
      </button>
      {rows.length > 0 && (
        <ul class="threads">
          {rows.map((thread) => (
            <ThreadRow key={thread.id} app={app} thread={thread} onOpen={onClose} onDelete={() => setDeleting(thread)} />
          ))}
        </ul>
      )}
      {list.next !== null && (
        <button type="button" class="link more" onClick={() => void list.showMore()}>
          Show more
        </button>
      )}
      {list.failed && <p class="aside">The list cannot be loaded right now.</p>}
      {list.loaded && !list.failed && rows.length === 0 && <p class="aside">Your threads will appear here.</p>}
      {deleting && <DeleteDialog app={app} thread={deleting} onDone={() => setDeleting(undefined)} />}
    </nav>
  );
}

/** The list, with what this page knows of the open thread before the list does. */
function withOpenThread(app: App): ThreadSummary[] {
  const { session, list } = app;
  const live = session.runState;
  const at = list.threads.findIndex((thread) => thread.id === session.id);
  if (at >= 0) {
    const known = list.threads[at]!;
    const state = session.caughtUp || session.active !== undefined ? live : known.state;
    return list.threads.with(at, { ...known, state: state === "idle" ? known.state : state });
  }
  if (app.isNew || session.deleted || session.messages.length === 0) return list.threads;
  return [{ id: session.id, title: app.title, state: live, activity: new Date().toISOString() }, ...list.threads];
}

interface RowProps {
  app: App;
  thread: ThreadSummary;
  onOpen: () => void;
  onDelete: () => void;
}

function ThreadRow({ app, thread, onOpen, onDelete }: RowProps) {
  const current = !app.isNew && thread.id === app.session.id;
  const title = thread.title.trim() || "Untitled";
  const open = (event: MouseEvent) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    app.openThread(thread.id);
    onOpen();
  };
  return (
    <li class={current ? "row current" : "row"}>
      <a
        href={`/t/${encodeURIComponent(thread.id)}`} data-testid="thread-item" data-id={thread.id} data-state={thread.state}
        aria-current={current ? "page" : undefined} onClick={open}
      >
        <span class="row-title">{title}</span>
        <span class="row-state" data-state={thread.state}>
          <i class="dot" aria-hidden="true" />
          {stateLabel(thread.state)}
          <span class="row-time">{since(thread.activity)}</span>
        </span>
      </a>
      <button type="button" class="quiet small" aria-label={`Delete the thread “${title}”`} title="Delete" onClick={onDelete}>
        <Icon name="trash" size={15} />
      </button>
    </li>
  );
}

interface DeleteProps {
  app: App;
  thread: ThreadSummary;
  onDone: () => void;
}

function DeleteDialog({ app, thread, onDone }: DeleteProps) {
  const [failed, setFailed] = useState(false);
  const shown = useRef(false);
  const show = (dialog: HTMLDialogElement | null) => {
    if (!dialog || shown.current) return;
    shown.current = true;
    dialog.showModal();
  };
  const remove = () => app.remove(thread.id).then(onDone, () => setFailed(true));
  return (
    <dialog ref={show} class="dialog" onClose={onDone} aria-labelledby="delete-title">
      <h2 id="delete-title">Delete this thread?</h2>
      <p>“{thread.title.trim() || "Untitled"}” and all its messages will be gone for everybody.</p>
      {failed && <p class="failed">The server did not delete it. Try again in a moment.</p>}
      <form method="dialog" class="choices">
        <button class="button">Keep</button>
        <button type="button" class="button danger" data-testid="confirm-delete" onClick={() => void remove()}>
          Delete
        </button>
      </form>
    </dialog>
  );
}
