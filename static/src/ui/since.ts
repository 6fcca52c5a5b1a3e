const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

/** How long ago an RFC 3339 time was, short; a date once it is more than a week ago. Empty if it is not a time. */
export function since(time: string, now = Date.now()): string {
  const at = Date.parse(time);
  if (Number.isNaN(at)) return "";
  const age = Math.max(0, now - at);
  if (age < minute) return "now";
  if (age < hour) return `${Math.floor(age / minute)} min`;
  if (age < day) return `${Math.floor(age / hour)} h`;
  if (age < 7 * day) return `${Math.floor(age / day)} d`;
  return new Date(at).toLocaleDateString(undefined, { day: "numeric", month: "short" });
}
