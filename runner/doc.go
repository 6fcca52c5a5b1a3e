// Package runner owns the life of a run:
//
//	accept (lease, SQL row) → agent runs → entries → terminal → end entry → compact → SQL → retention → gone
//
// [Runner.Run] answers as soon as the run is recorded; from then on the run belongs to the thread, and no
// caller's context or socket can end it: only its agent, [Runner.Stop], a lost lease, or [Runner.Drain].
// Whatever happens, the run gets exactly one terminal event and one end entry, and one finisher saves it. A run whose
// owner went away is taken over by [Runner.Reclaim], which ends it and saves it with the same code. [Runner.Delete]
// stops what runs and leaves nothing of the thread but its last run number.
//
// The package does not know how entries reach viewers: it appends them to a [Log].
package runner
