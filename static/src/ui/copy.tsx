import { useState } from "preact/hooks";
import { Icon } from "./icons";

const shownFor = 1_500; // ms for which the button says that it worked

export function CopyButton({ text, label }: { text: () => string; label: string }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    if (!(await toClipboard(text()))) return;
    setDone(true);
    setTimeout(() => setDone(false), shownFor);
  };
  return (
    <button type="button" class="quiet small" onClick={() => void copy()} aria-label={done ? "Copied" : label} title={label}>
      <Icon name={done ? "check" : "copy"} size={15} />
    </button>
  );
}

// The clipboard API is missing where the page is served over plain HTTP from another machine.
async function toClipboard(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    return copied;
  }
}
