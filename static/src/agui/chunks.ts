import type { AguiEvent } from "./events";

type Kind = "text" | "call" | "reasoning";

interface Stream {
  kind: Kind;
  id: string;
  lane: string | undefined; // the subagentRunId; undefined is the parent's lane
  opener: AguiEvent;
}

interface Shape {
  id: string; // the field that names the item
  start: string;
  content: string;
  end: string;
  repeats: Record<string, unknown>; // fields that a continuation must repeat, with what absence means
}

const shapes: Record<Kind, Shape> = {
  text: {
    id: "messageId",
    start: "TEXT_MESSAGE_START",
    content: "TEXT_MESSAGE_CONTENT",
    end: "TEXT_MESSAGE_END",
    repeats: { role: "assistant", name: undefined },
  },
  call: {
    id: "toolCallId",
    start: "TOOL_CALL_START",
    content: "TOOL_CALL_ARGS",
    end: "TOOL_CALL_END",
    repeats: { toolCallName: undefined, parentMessageId: undefined },
  },
  reasoning: {
    id: "messageId",
    start: "REASONING_MESSAGE_START",
    content: "REASONING_MESSAGE_CONTENT",
    end: "REASONING_MESSAGE_END",
    repeats: {},
  },
};

const chunkKinds: Record<string, Kind> = {
  TEXT_MESSAGE_CHUNK: "text",
  TOOL_CALL_CHUNK: "call",
  REASONING_MESSAGE_CHUNK: "reasoning",
};

const closesOwnLane = /^(TEXT_MESSAGE|TOOL_CALL|STATE|STEP|REASONING_MESSAGE)_|^CUSTOM$|^REASONING_(START|END)$/;
const closesAll = /^RUN_|^MESSAGES_SNAPSHOT$/;
const closesSubagent = /^SUBAGENT_(FINISHED|ERROR)$/;

// Fields of a chunk that have a place of their own in what it becomes (K4 to K7).
const placed = new Set([
  "type", "messageId", "toolCallId", "role", "name", "toolCallName", "parentMessageId",
  "delta", "rawEvent", "metadata", "timestamp", "subagentRunId",
]);

/** Turns chunk events into the START, CONTENT and END events they stand for (AG-UI 1.0, section 12). */
export class ChunkExpander {
  private streams: Stream[] = []; // at most one a lane, in opening order

  /** What the event stands for, in order. Throws if a chunk fits nowhere; nothing of it is applied then. */
  expand(event: AguiEvent): AguiEvent[] {
    const kind = chunkKinds[event.type];
    if (kind) return this.chunk(kind, event);
    const lane = event.subagentRunId as string | undefined;
    if (closesAll.test(event.type)) return [...this.close(() => true), event];
    if (closesOwnLane.test(event.type) || closesSubagent.test(event.type)) {
      return [...this.close((stream) => stream.lane === lane), event];
    }
    return [event];
  }

  private chunk(kind: Kind, chunk: AguiEvent): AguiEvent[] {
    const shape = shapes[kind];
    const id = chunk[shape.id] as string | undefined;
    const lane = this.laneOf(kind, id, chunk.subagentRunId as string | undefined);
    const current = this.streams.find((stream) => stream.lane === lane);
    if (current && current.kind === kind && (id === undefined || id === current.id)) {
      this.checkRepeats(shape, current.opener, chunk);
      return this.content(current, chunk, false);
    }
    const closed = this.close((stream) => stream.lane === lane);
    if (id === undefined || (kind === "call" && chunk.toolCallName === undefined)) {
      throw new Error(`${chunk.type} opens an item without naming it`);
    }
    const stream = { kind, id, lane, opener: chunk };
    this.streams.push(stream);
    return [...closed, this.start(stream), ...this.content(stream, chunk, true)];
  }

  private laneOf(kind: Kind, id: string | undefined, tag: string | undefined): string | undefined {
    if (id !== undefined) {
      const open = this.streams.find((stream) => stream.kind === kind && stream.id === id);
      if (open && tag !== undefined && tag !== open.lane) throw new Error(`chunk for ${id} names another lane`);
      return open ? open.lane : tag;
    }
    if (tag !== undefined) return tag;
    const lanes = this.streams.filter((stream) => stream.kind === kind).map((stream) => stream.lane);
    if (lanes.includes(undefined) || lanes.length === 0) return undefined;
    if (lanes.length > 1) throw new Error("chunk without an id is ambiguous");
    return lanes[0];
  }

  private checkRepeats(shape: Shape, opener: AguiEvent, chunk: AguiEvent): void {
    for (const [field, absent] of Object.entries(shape.repeats)) {
      if (chunk[field] !== undefined && chunk[field] !== (opener[field] ?? absent)) {
        throw new Error(`chunk disagrees with its opener about ${field}`);
      }
    }
  }

  private start({ kind, id, lane, opener }: Stream): AguiEvent {
    const shape = shapes[kind];
    const start: AguiEvent = { type: shape.start, [shape.id]: id };
    if (kind === "text") start.role = opener.role ?? "assistant";
    if (kind === "reasoning") start.role = "reasoning";
    for (const field of Object.keys(shape.repeats)) {
      if (opener[field] !== undefined) start[field] = opener[field];
    }
    if (opener.metadata !== undefined) start.metadata = opener.metadata;
    if (lane !== undefined) start.subagentRunId = lane;
    if (opener.delta === undefined && opener.rawEvent === undefined) Object.assign(start, unplaced(opener));
    return start;
  }

  private content(stream: Stream, chunk: AguiEvent, opening: boolean): AguiEvent[] {
    const rest = unplaced(chunk);
    const carries = chunk.delta !== undefined || chunk.rawEvent !== undefined;
    const continues = !opening && (chunk.metadata !== undefined || Object.keys(rest).length > 0);
    if (!carries && !continues) return [];
    const shape = shapes[stream.kind];
    const event: AguiEvent = { type: shape.content, [shape.id]: stream.id, delta: chunk.delta ?? "", ...rest };
    if (chunk.metadata !== undefined) event.metadata = chunk.metadata;
    if (chunk.rawEvent !== undefined) event.rawEvent = chunk.rawEvent;
    const tag = chunk.subagentRunId ?? stream.lane;
    if (tag !== undefined) event.subagentRunId = tag;
    return [event];
  }

  private close(which: (stream: Stream) => boolean): AguiEvent[] {
    const closing = this.streams.filter(which);
    if (closing.length === 0) return [];
    this.streams = this.streams.filter((stream) => !which(stream));
    return closing.map(({ kind, id, lane }) => {
      const end: AguiEvent = { type: shapes[kind].end, [shapes[kind].id]: id };
      if (lane !== undefined) end.subagentRunId = lane;
      return end;
    });
  }
}

function unplaced(chunk: AguiEvent): Record<string, unknown> {
  return Object.fromEntries(Object.entries(chunk).filter(([field]) => !placed.has(field)));
}
