import { render } from "preact";
import { plainText } from "./agui/events";
import { App } from "./app";
import { Connection } from "./thread/connection";
import { Page } from "./ui/page";
import "./styles/tokens.css";
import "./styles/layout.css";
import "./styles/conversation.css";
import "./styles/controls.css";
import "./styles/code.css";

declare global {
  interface Window {
    /** For tests that drive a browser: the position, and what has been said, straight from the log. */
    __threadcast: { readonly threadId: string; readonly cursor: string; text(): string; messages(): unknown };
  }
}

const app = new App(new Connection());
app.start();
render(<Page app={app} />, document.getElementById("app")!);

window.__threadcast = {
  get threadId() {
    return app.session.id;
  },
  get cursor() {
    return app.session.log.cursor;
  },
  text: () =>
    app.session.conversation.messages
      .filter((message) => message.role === "assistant")
      .map((message) => plainText(message.content))
      .join("\n\n"),
  messages: () => structuredClone(app.session.messages),
};
