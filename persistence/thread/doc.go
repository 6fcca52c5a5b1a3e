// Package thread is the vocabulary of threadcast: the words that the live log, the history, the runner and
// the hub share, so that none of them needs to import another.
//
// A thread is a conversation. A run is one execution of an agent on a thread; a thread's runs are numbered
// 1, 2, 3... and the numbers never restart. A run's entries are numbered 1, 2, 3... without holes, and the
// last of them is its end. Run number and entry number together are a [Cursor], the one coordinate of live
// delivery, replay and history.
//
// The package imports nothing but the standard library and holds no behaviour beyond its own values.
package thread
