import type { Conversation, Run } from "../agui/conversation";
import type { Interrupt, ResumeEntry, RunState } from "../agui/events";
import { Icon } from "./icons";

const titles: Partial<Record<RunState, string>> = {
  failed: "The run failed",
  timed_out: "The agent took too long",
  lost: "The run was lost",
  shut_down: "The server shut down during this run",
};

const reasons: Partial<Record<RunState, string>> = {
  failed: "What the agent had sent is kept.",
  timed_out: "The run was ended. What the agent had sent is kept.",
  lost: "The server that ran it went away. What it had sent is kept.",
  shut_down: "What the agent had sent is kept.",
};

interface RunEndProps {
  run: Run;
  conversation: Conversation;
  onAgain?: () => void;
}

/** How a run ended, where there is something to say about it. */
export function RunEnd({ run, conversation, onAgain }: RunEndProps) {
  if (run.state === "stopped") return <p class="marker">Stopped</p>;
  if (run.state === "waiting") return <Asked run={run} conversation={conversation} />;
  return (
    <div class="notice error" role={onAgain ? "alert" : undefined} data-testid="error-notice" data-code={run.error?.code}>
      <Icon name="alert" />
      <div>
        <strong>{titles[run.state]}</strong>
        <p>{run.error?.message || reasons[run.state]}</p>
      </div>
      {onAgain && (
        <button type="button" class="button" onClick={onAgain}>
          Try again
        </button>
      )}
    </div>
  );
}

/** Questions that have been answered stay readable, with the answer. */
function Asked({ run, conversation }: { run: Run; conversation: Conversation }) {
  const pending = new Set(conversation.pending.map((interrupt) => interrupt.id));
  const asked = run.interrupts?.filter((interrupt) => !pending.has(interrupt.id)) ?? [];
  return (
    <>
      {asked.map((interrupt) => (
        <p key={interrupt.id} class="marker asked">
          {question(interrupt)} <span class="answer">{answer(conversation.answers.get(interrupt.id))}</span>
        </p>
      ))}
    </>
  );
}

export function question(interrupt: Interrupt): string {
  if (interrupt.message) return interrupt.message;
  return interrupt.reason === "input_required" ? "The agent asks for an answer." : "The agent asks for your approval.";
}

function answer(entry: ResumeEntry | undefined): string {
  if (!entry) return "";
  const approved = (entry.payload as { approved?: unknown } | undefined)?.approved;
  if (entry.status === "cancelled" || approved === false) return "Declined";
  return approved === true ? "Approved" : "Answered";
}
