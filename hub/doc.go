// Package hub turns a live log and a history into subscriptions.
//
//	live log ──Tail──▶ feed (one per watched thread) ──▶ ring ──┐
//	live log ──Read──────────────────────────────────────────────┼──▶ Subscription.Next ──▶ session
//	history ──NextRun────────────────────────────────────────────┘
//
// A [Subscription] is a cursor, not a queue. [Subscription.Next] returns what lies ahead of the cursor, from
// wherever it is: the ring when the reader keeps up, the live log when it fell behind, history when the
// run is finished. Because the cursor is one total order over all three there is no hand-over between
// them, and a slow reader costs no memory. The hub knows nothing of AG-UI: it carries bytes, and is told in its
// [Config] how to compact them.
//
// Beside the threads, the hub hands out the changes of lists of threads: a [ListSubscription] follows those of one user,
// which [Hub.Listed] is told of. What waits for a slow reader there is bounded.
package hub
