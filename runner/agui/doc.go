// Package agui is what threadcast knows of AG-UI 1.0, the protocol that agents speak: it stands between the
// bytes of an agent and the runner, which records them.
//
// An event is carried, not re-made. [ParseHeader] and [Tracker] read the few fields that a relay needs and leave
// the rest alone, so unknown types, unknown fields, number spellings and lone surrogate halves pass through. Only
// [Compact] makes events out of others, and it works on the JSON text for the same reason.
//
// The flow of one run: [ParseInput] judges the request, [ReduceInput] takes out what the thread already holds,
// [RunStarted] or [CompleteStarted] puts it on record, [Tracker.Observe] judges each event of the agent,
// [Tracker.Closers] with [RunCancelled] or [RunError] end the run in order, and [Compact] makes the record small.
// [Reducer] tells what messages and state a record amounts to; [Verifier] tells whether it is a legal stream.
//
// The package is pure: no goroutine, no clock, no input or output. A byte slice that is passed in is never changed,
// and may be referred to by what is returned.
//
// Rules are cited as in the project's description of the protocol: V1 to V24 for verification, K1 to K9 for chunks,
// R1 to R12 for the reducer, P1 to P5 for compaction. Identifiers are opaque strings; where a JSON string holds half
// of a surrogate pair, its decoded form keeps that half in the three bytes that generalized UTF-8 gives it, so that
// identifiers that differ stay different.
package agui
