// What the agents of the bench do: they play the last message of the user, which is a list of events and directives
// (agenttest.ParseSteps). In events {thread} and {run} stand for the ids of the run.

export const started = { type: "RUN_STARTED", threadId: "{thread}", runId: "{run}" };
export const finished = { type: "RUN_FINISHED", threadId: "{thread}", runId: "{run}" };
export const failed = (message) => ({ type: "RUN_ERROR", message });
export const opens = { type: "TEXT_MESSAGE_START", messageId: "m-{run}", role: "assistant" };
export const closes = { type: "TEXT_MESSAGE_END", messageId: "m-{run}" };
export const says = (delta) => ({ type: "TEXT_MESSAGE_CONTENT", messageId: "m-{run}", delta });

// counts says "0 ", "1 "... up to n, this many milliseconds apart.
export const counts = (n, apart = 0) => ({ $repeat: n, $event: says("{i} "), $sleepMs: apart });
export const waits = (gate) => ({ $waitFor: gate });
export const marks = (mark) => ({ $mark: mark });

// counted is the text that counts makes.
export const counted = (...ns) => ns.map((n) => Array.from({ length: n }, (_, i) => `${i} `).join("")).join("");

// text is a run that says something.
export const text = (...steps) => [started, opens, ...steps, closes, finished];

// script is a list of steps as the message of a user.
export const script = (steps) => JSON.stringify(steps);
