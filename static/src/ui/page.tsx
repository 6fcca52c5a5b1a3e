import { useEffect, useReducer, useState } from "preact/hooks";
import type { App } from "../app";
import { Announcer } from "./announcer";
import { Composer } from "./composer";
import { Header } from "./header";
import { Icon } from "./icons";
import { Scroller } from "./scroller";
import { Sidebar } from "./sidebar";
import { StatePanel, hasState } from "./statepanel";
import { Timeline } from "./timeline";
import { Welcome } from "./welcome";

const wide = "(min-width: 1180px)"; // there is room for the state beside the conversation

/** The whole page. */
export function Page({ app }: { app: App }) {
  const [, redraw] = useReducer((n: number) => n + 1, 0);
  const [drawer, setDrawer] = useState(false);
  const [wantsState, setWantsState] = useState<boolean>();
  const [sent, setSent] = useState(0);
  useEffect(() => app.onDraw(() => redraw(undefined)), [app]);
  useEscape(app, drawer, () => setDrawer(false));

  const { session } = app;
  const state = session.conversation.state;
  const filled = session.messages.length > 0 || session.conversation.runs.length > 0 || session.busy;
  const stateShown = hasState(state) ? (wantsState ?? matchMedia(wide).matches) : undefined;
  return (
    <div class={drawer ? "page with-drawer" : "page"}>
      <Sidebar app={app} onClose={() => setDrawer(false)} />
      <div class="shade" onClick={() => setDrawer(false)} />
      <main class="main" inert={drawer}>
        <Header
          app={app} drawer={drawer} onMenu={() => setDrawer(true)}
          stateShown={stateShown} onState={() => setWantsState(!stateShown)}
        />
        <div class="columns">
          <section class="conversation" aria-label={app.title || "New thread"}>
            <Scroller subject={session.id} anchor={sent} filled={filled}>
              {filled ? <Timeline key={session.id} app={app} session={session} /> : <Empty app={app} />}
            </Scroller>
            <div class="foot">
              <div class="foot-inner">
                <Notices app={app} />
                <Composer key={session.id} app={app} onSent={() => setSent(sent + 1)} />
              </div>
            </div>
          </section>
          {stateShown && <StatePanel state={state} onClose={() => setWantsState(false)} />}
        </div>
        <Announcer key={session.id} session={session} />
      </main>
    </div>
  );
}

/** What stands in the place of a conversation that has not begun, or is not here yet. */
function Empty({ app }: { app: App }) {
  const { session } = app;
  if (app.isNew || session.caughtUp) return <Welcome app={app} />;
  return <div class="loading" role="status">{session.link === "connected" ? "Loading the conversation…" : ""}</div>;
}

function Notices({ app }: { app: App }) {
  const { session } = app;
  if (session.deleted) {
    return (
      <div class="notice" role="alert" data-testid="deleted-notice">
        <Icon name="trash" />
        <div>This thread was deleted.</div>
        <button type="button" class="button" onClick={() => app.newThread()}>
          New thread
        </button>
      </div>
    );
  }
  if (!session.notice) return null;
  return (
    <div class="notice error" role="alert" data-testid="error-notice" data-code={session.notice.code}>
      <Icon name="alert" />
      <div>{session.notice.text}</div>
      <button type="button" class="quiet small" aria-label="Dismiss" onClick={() => session.dismiss()}>
        <Icon name="close" size={16} />
      </button>
    </div>
  );
}

/** Esc closes the drawer; else it stops the run. */
function useEscape(app: App, drawer: boolean, closeDrawer: () => void): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || event.defaultPrevented || event.isComposing) return;
      if (document.querySelector("dialog[open]")) return;
      if (drawer) closeDrawer();
      else if (app.session.busy) app.session.stop();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [app, drawer]);
}
