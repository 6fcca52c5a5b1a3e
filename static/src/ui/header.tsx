import type { App } from "../app";
import { Icon } from "./icons";
import { linkLabel, stateLabel } from "./labels";
import { quietFor, useSeconds } from "./progress";

interface HeaderProps {
  app: App;
  drawer: boolean;
  onMenu: () => void;
  /** undefined when the thread has no state to show. */
  stateShown: boolean | undefined;
  onState: () => void;
}

/** The open thread's title, how its run stands, and how the connection stands. */
export function Header({ app, drawer, onMenu, stateShown, onState }: HeaderProps) {
  return (
    <header class="header">
      <button
        type="button" class="quiet menu" aria-label="Threads" aria-controls="threads" aria-expanded={drawer}
        data-testid="menu" onClick={onMenu}
      >
        <Icon name="menu" />
      </button>
      <h1 class="title">{app.isNew ? "New thread" : app.title || "Thread"}</h1>
      <RunPill app={app} />
      <LinkPill app={app} />
      {stateShown !== undefined && (
        <button
          type="button" class={stateShown ? "quiet state-toggle on" : "quiet state-toggle"} aria-pressed={stateShown}
          aria-label="Shared state" title="Shared state" data-testid="state-toggle" onClick={onState}
        >
          <Icon name="braces" />
        </button>
      )}
    </header>
  );
}

function RunPill({ app }: { app: App }) {
  const { session } = app;
  const state = session.runState;
  useSeconds(state === "running");
  const quiet = quietFor(session);
  const label = session.stopping ? "stopping…" : quiet > 0 ? `running, quiet for ${quiet} s` : stateLabel(state);
  return (
    <span class="pill" data-testid="run-state" data-state={state} data-run={session.active} hidden={state === "idle"}>
      <i class="dot" aria-hidden="true" />
      {label}
    </span>
  );
}

function LinkPill({ app }: { app: App }) {
  const link = app.session.link;
  const label = linkLabel(link, app.connection.opened);
  return (
    <span class="pill link-pill" data-testid="pill" data-state={link} role="status" title={label}>
      <i class="dot" aria-hidden="true" />
      <span class="pill-text">{label}</span>
    </span>
  );
}
