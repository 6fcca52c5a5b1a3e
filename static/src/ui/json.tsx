import { useEffect, useRef, useState } from "preact/hooks";

const openDepth = 4; // levels that are open at first
const openChildren = 20; // a branch with more is closed at first
const manyChildren = 100; // children shown before the rest is asked for

/** A JSON value as a tree that opens and closes. What changes is lit up for a moment. */
export function JsonTree({ value, name, depth = 0 }: { value: unknown; name?: string; depth?: number }) {
  const branches = value !== null && typeof value === "object";
  return branches ? (
    <Branch value={value} name={name} depth={depth} />
  ) : (
    <div class="json-row">
      {name !== undefined && <span class="json-key">{name}</span>}
      <Leaf value={value} />
    </div>
  );
}

function Branch({ value, name, depth }: { value: object; name?: string; depth: number }) {
  const [open, setOpen] = useState(depth < openDepth && Object.keys(value).length <= openChildren);
  const [limit, setLimit] = useState(manyChildren);
  const entries = Object.entries(value);
  const array = Array.isArray(value);
  const count = array ? `[${entries.length}]` : `{${entries.length}}`;
  return (
    <details class="json" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        {name !== undefined && <span class="json-key">{name}</span>}
        <span class="json-count">{count}</span>
      </summary>
      {open && (
        <div class="json-children">
          {entries.slice(0, limit).map(([key, child]) => (
            <JsonTree key={key} name={key} value={child} depth={depth + 1} />
          ))}
          {entries.length > limit && (
            <button type="button" class="link" onClick={() => setLimit(limit + manyChildren)}>
              {entries.length - limit} more
            </button>
          )}
        </div>
      )}
    </details>
  );
}

function Leaf({ value }: { value: unknown }) {
  const ref = useRef<HTMLSpanElement>(null);
  const first = useRef(true);
  useEffect(() => {
    const lit = !first.current && ref.current?.animate;
    first.current = false;
    if (!lit || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    ref.current!.animate([{ backgroundColor: "var(--lit)" }, { backgroundColor: "transparent" }], 1_200);
  }, [value]);
  return (
    <span ref={ref} class={`json-leaf json-${value === null ? "null" : typeof value}`}>
      {typeof value === "string" ? value : String(value)}
    </span>
  );
}

/** JSON text in a readable form; text that is not JSON stays as it is. */
export function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
