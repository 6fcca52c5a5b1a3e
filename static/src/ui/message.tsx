import { plainText, type ContentPart, type Message } from "../agui/events";
import type { Conversation } from "../agui/conversation";
import { CopyButton } from "./copy";
import { ActivityFold, ReasoningFold, ResultFold, SystemFold, ToolFold } from "./folds";
import { Markdown } from "./markdown";
import { memo } from "./memo";

export interface MessageProps {
  message: Message;
  version: number;
  conversation: Conversation;
  running: boolean;
  /** Whether it is the last of an answer: what can be done with the answer is offered there. */
  last: boolean;
  /** Whether the message is known to this page only: the server has not shown it yet. */
  unsent: boolean;
}

/** One message, drawn again only when it changed. */
export const MessageView = memo<MessageProps>(
  (props) => (
    <article
      class={`message ${props.message.role}`}
      data-testid="message"
      data-role={props.message.role}
      data-id={props.message.id}
      data-unsent={props.unsent || undefined}
    >
      <Body {...props} />
    </article>
  ),
  (a, b) =>
    a.message === b.message && a.version === b.version && a.running === b.running && a.unsent === b.unsent &&
    a.last === b.last && a.conversation === b.conversation,
);

function Body(props: MessageProps) {
  const { message, conversation } = props;
  switch (message.role) {
    case "user":
      return <UserBody message={message} />;
    case "assistant":
      return <AssistantBody {...props} />;
    case "reasoning":
      return <ReasoningFold message={message} writing={conversation.isWriting(message.id)} />;
    case "tool":
      return <ResultFold message={message} />;
    case "activity":
      return <ActivityFold message={message} />;
    default:
      return <SystemFold message={message} />;
  }
}

function UserBody({ message }: { message: Message }) {
  const attached = Array.isArray(message.content) ? message.content.filter((part) => part.type !== "text") : [];
  return (
    <>
      <h3 class="sr-only">{message.name ?? "You"}</h3>
      <div class="bubble">{plainText(message.content)}</div>
      {attached.map((part, i) => (
        <Attachment key={i} part={part} />
      ))}
    </>
  );
}

function Attachment({ part }: { part: ContentPart }) {
  return <span class="attachment">{part.source?.mimeType ?? part.type}</span>;
}

function AssistantBody({ message, conversation, running, last }: MessageProps) {
  const text = plainText(message.content);
  const writing = conversation.isWriting(message.id);
  const speaker = conversation.subagents.get(message.subagentRunId ?? "") ?? message.name;
  return (
    <>
      <h3 class={speaker ? "speaker" : "sr-only"}>{speaker ?? "Assistant"}</h3>
      {text !== "" && <Markdown text={text} done={!writing} />}
      {message.toolCalls?.map((call) => (
        <ToolFold key={call.id} call={call} conversation={conversation} running={running} />
      ))}
      {text !== "" && !writing && last && (
        <div class="actions">
          <CopyButton text={() => text} label="Copy answer" />
        </div>
      )}
    </>
  );
}
