import { Icon } from "./icons";
import { JsonTree } from "./json";
import { CopyButton } from "./copy";

/** Whether there is any state worth showing. */
export function hasState(state: unknown): boolean {
  if (state === null || state === undefined || state === "") return false;
  return typeof state !== "object" || Object.keys(state).length > 0;
}

/** The state that agent and page share, as JSON. */
export function StatePanel({ state, onClose }: { state: unknown; onClose: () => void }) {
  return (
    <aside class="state-panel" aria-label="Shared state" data-testid="state-panel">
      <div class="state-head">
        <h2>Shared state</h2>
        <CopyButton text={() => JSON.stringify(state, null, 2)} label="Copy as JSON" />
        <button type="button" class="quiet small" aria-label="Close the shared state" onClick={onClose}>
          <Icon name="close" size={16} />
        </button>
      </div>
      <div class="state-body" tabIndex={0}>
        <JsonTree value={state} />
      </div>
    </aside>
  );
}
