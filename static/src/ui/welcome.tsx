import type { App } from "../app";

interface Suggestion {
  title: string;
  text: string;
}

// What the built-in demo agent can be asked for.
const demo: Suggestion[] = [
  { title: "Say hello", text: "Hello! What is threadcast?" },
  { title: "Call a tool", text: "Use the weather tool for Lisbon" },
  { title: "Share state", text: "Work through a plan in shared state" },
  { title: "Show reasoning", text: "Think it over first, and show the reasoning" },
  { title: "Ask for approval", text: "Do something that needs my approval" },
  { title: "Write at length", text: "Write a long answer about durable streams" },
  { title: "Stay silent", text: "Stay silent for 15 seconds, then answer" },
  { title: "Fail", text: "Fail, so that I can see an error" },
];

/** An empty thread: what this is, and some ways to begin. */
export function Welcome({ app }: { app: App }) {
  const agent = app.agents.find((known) => known.id === app.agentId);
  return (
    <div class="welcome">
      <h2>What shall we work on?</h2>
      <p>
        An answer belongs to this thread, not to this tab. Reload, open a second tab, or close the page: it goes on, and all
        of it is here when you come back.
      </p>
      {agent?.type === "demo" && (
        <ul class="suggestions">
          {demo.map((suggestion) => (
            <li key={suggestion.title}>
              <button
                type="button" data-testid="suggestion" disabled={app.session.busy}
                onClick={() => app.send(suggestion.text)}
              >
                <strong>{suggestion.title}</strong>
                <span>{suggestion.text}</span>
              </button>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
