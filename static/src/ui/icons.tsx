const paths = {
  menu: "M4 7h16M4 12h16M4 17h16",
  plus: "M12 5v14M5 12h14",
  close: "M6 6l12 12M18 6L6 18",
  send: "M12 19V5M6 11l6-6 6 6",
  stop: "M7 7h10v10H7z",
  down: "M12 5v14M6 13l6 6 6-6",
  chevron: "M9 6l6 6-6 6",
  trash: "M5 7h14M10 11v6M14 11v6M7 7l1 12h8l1-12M9 7V4h6v3",
  copy: "M9 9h10v10H9zM15 9V5H5v10h4",
  check: "M5 13l4 4L19 7",
  braces: "M9 4c-3 0-3 2-3 4s0 4-2 4c2 0 2 2 2 4s0 4 3 4M15 4c3 0 3 2 3 4s0 4 2 4c-2 0-2 2-2 4s0 4-3 4",
  tool: "M14.5 6a4 4 0 0 0-5.3 5L4 16.2V20h3.8l5.2-5.2a4 4 0 0 0 5-5.3l-2.6 2.6-2.4-.6-.6-2.4z",
  thought: "M9 18h6M10 21h4M12 3a6 6 0 0 0-3.5 10.9c.6.5.9 1 .9 1.6h5.2c0-.6.3-1.1.9-1.6A6 6 0 0 0 12 3z",
  alert: "M12 8v5M12 16.5v.5M12 3l9.5 17h-19z",
  question: "M9.5 9.5a2.5 2.5 0 1 1 3.5 2.3c-.7.4-1 .9-1 1.7M12 16.5v.5M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18z",
  activity: "M3 12h4l3-8 4 16 3-8h4",
} as const;

export type IconName = keyof typeof paths;

/** A drawing that says nothing by itself: what it stands for is told by the text or label beside it. */
export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 24 24" aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  );
}

/** The mark of threadcast: one thread, seen in several places. */
export function Mark() {
  return (
    <svg class="mark" width="22" height="22" viewBox="0 0 32 32" aria-hidden="true">
      <path d="M4 16h9M13 16c5 0 4-9 10-9h5M13 16h15M13 16c5 0 4 9 10 9h5" />
      <circle cx="13" cy="16" r="3" />
    </svg>
  );
}
