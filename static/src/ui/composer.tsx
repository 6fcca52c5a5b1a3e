import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { App } from "../app";
import { Icon } from "./icons";

/** Where the user writes. Enter sends, Shift+Enter makes a new line; while a run goes on the button stops it. */
export function Composer({ app, onSent }: { app: App; onSent: () => void }) {
  const { session } = app;
  const area = useRef<HTMLTextAreaElement>(null);
  const [text, setText] = useState(app.draft());
  const pending = !session.busy && session.conversation.pending.length > 0;
  const blocked = session.busy || session.deleted || pending;
  const write = (value: string) => {
    setText(value);
    app.keepDraft(value);
  };

  useEffect(() => {
    if (session.returned === undefined) return;
    if (text === "") write(session.returned);
    session.returned = undefined;
  });
  useLayoutEffect(() => fit(area.current!), [text]);
  useEffect(() => {
    if (matchMedia("(pointer: fine)").matches) area.current!.focus();
  }, []);

  const send = () => {
    if (blocked || text.trim() === "") return;
    app.send(text);
    write("");
    onSent();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  };
  const hint = hintFor(app, text, pending);
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <textarea
        ref={area} rows={1} value={text} data-testid="composer" enterkeyhint="send"
        aria-label="Message" aria-describedby="composer-hint"
        placeholder={session.deleted ? "This thread was deleted" : "Write a message"} disabled={session.deleted}
        onInput={(event) => write(event.currentTarget.value)} onKeyDown={onKeyDown}
      />
      <div class="composer-row">
        <AgentPicker app={app} />
        <span id="composer-hint" class="hint" aria-live="polite">
          {hint}
        </span>
        {session.busy ? (
          <button
            type="button" class="round stop" data-testid="stop" aria-label="Stop" title="Stop (Esc)"
            disabled={session.stopping} onClick={() => session.stop()}
          >
            <Icon name="stop" />
          </button>
        ) : (
          <button
            type="submit" class="round send" data-testid="send" aria-label="Send" title="Send (Enter)"
            disabled={blocked || text.trim() === ""}
          >
            <Icon name="send" />
          </button>
        )}
      </div>
    </form>
  );
}

function hintFor(app: App, text: string, pending: boolean): string {
  const { session } = app;
  if (pending) return "Answer the question above to go on.";
  if (session.stopping) return "Stopping…";
  if (session.busy) return text.trim() === "" ? "Esc stops the run" : "You can send when this run has ended, or stop it.";
  return "";
}

function fit(area: HTMLTextAreaElement): void {
  area.style.height = "auto";
  area.style.height = `${area.scrollHeight}px`;
}

function AgentPicker({ app }: { app: App }) {
  if (app.agents.length < 2) return null;
  return (
    <label class="picker">
      <span class="sr-only">Agent</span>
      <select
        data-testid="agent" value={app.agentId} disabled={app.session.busy}
        onChange={(event) => app.chooseAgent(event.currentTarget.value)}
      >
        {app.agents.map((agent) => (
          <option key={agent.id} value={agent.id}>
            {agent.id}
          </option>
        ))}
      </select>
    </label>
  );
}
