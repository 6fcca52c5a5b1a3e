import { useState } from "preact/hooks";
import type { App } from "../app";
import type { Interrupt, ResumeEntry } from "../agui/events";
import { isExpired } from "../thread/session";
import { question } from "./ending";
import { Icon } from "./icons";

/** What the agent waits for. The answers go out together, once every question has one. */
export function Interrupts({ app, interrupts }: { app: App; interrupts: Interrupt[] }) {
  const [answers, setAnswers] = useState<Record<string, ResumeEntry>>({});
  const give = (entry: ResumeEntry) => {
    const all = { ...answers, [entry.interruptId]: entry };
    setAnswers(all);
    const entries = interrupts.flatMap((interrupt) => all[interrupt.id] ?? []);
    if (entries.length === interrupts.length) app.answer(entries);
  };
  return (
    <>
      {interrupts.map((interrupt) => (
        <Question key={interrupt.id} interrupt={interrupt} given={answers[interrupt.id]} onAnswer={give} />
      ))}
    </>
  );
}

interface QuestionProps {
  interrupt: Interrupt;
  given: ResumeEntry | undefined;
  onAnswer: (entry: ResumeEntry) => void;
}

function Question({ interrupt, given, onAnswer }: QuestionProps) {
  const expired = isExpired(interrupt);
  const approve = (payload: unknown) => onAnswer({ interruptId: interrupt.id, status: "resolved", payload });
  const decline = () =>
    onAnswer(
      expired || asksForInput(interrupt)
        ? { interruptId: interrupt.id, status: "cancelled" }
        : { interruptId: interrupt.id, status: "resolved", payload: { approved: false } },
    );
  return (
    <div class="notice ask" role="group" aria-label="The agent waits for you" data-testid="interrupt" data-id={interrupt.id}>
      <Icon name="question" />
      <div>
        <strong>{question(interrupt)}</strong>
        {expired && <p>The time for an answer is over. It can only be declined.</p>}
        {asksForInput(interrupt) && !expired ? (
          <InputForm onAnswer={approve} onDecline={decline} schema={interrupt.responseSchema} />
        ) : (
          <div class="choices">
            <button
              type="button" class="button primary" data-testid="approve" disabled={expired}
              onClick={() => approve({ approved: true })}
            >
              Approve
            </button>
            <button type="button" class="button" data-testid="decline" onClick={decline}>
              Decline
            </button>
            {given && <span class="answer">Noted. The other question is still open.</span>}
          </div>
        )}
      </div>
    </div>
  );
}

function asksForInput(interrupt: Interrupt): boolean {
  const properties = interrupt.responseSchema?.properties;
  if (properties !== null && typeof properties === "object" && "approved" in properties) return false;
  return interrupt.reason === "input_required" || interrupt.responseSchema !== undefined;
}

interface InputFormProps {
  schema: Record<string, unknown> | undefined;
  onAnswer: (payload: unknown) => void;
  onDecline: () => void;
}

function InputForm({ schema, onAnswer, onDecline }: InputFormProps) {
  const [value, setValue] = useState("");
  const submit = (event: Event) => {
    event.preventDefault();
    if (value.trim() !== "") onAnswer(toPayload(value, schema));
  };
  return (
    <form onSubmit={submit}>
      <textarea
        aria-label="Your answer" rows={2} value={value} placeholder="Your answer"
        onInput={(event) => setValue(event.currentTarget.value)}
      />
      <div class="choices">
        <button type="submit" class="button primary" data-testid="approve" disabled={value.trim() === ""}>
          Answer
        </button>
        <button type="button" class="button" data-testid="decline" onClick={onDecline}>
          Decline
        </button>
      </div>
    </form>
  );
}

/**
 * What was typed in the form that the schema asks for: JSON where it is JSON and no plain string is wanted; the value of
 * the only field, where the schema is an object with one.
 */
export function toPayload(typed: string, schema: Record<string, unknown> | undefined): unknown {
  if (schema?.type === "string") return typed;
  try {
    return JSON.parse(typed);
  } catch {
    const fields = Object.keys((schema?.properties as object | undefined) ?? {});
    return fields.length === 1 ? { [fields[0]!]: typed } : typed;
  }
}
