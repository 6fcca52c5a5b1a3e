// Package sqlitefile opens the one SQLite file that a threadcast in embedded mode keeps everything in.
//
// It stands below the live log (package sqllog) and the history (package history), which share what it opens: one
// connection that writes, so that no write of the process ever waits for another in SQLite's own busy loop, and a
// few that read. It makes sure that the file is a sound SQLite database, that no other threadcast uses it, and that
// whoever starts the program is told in a sentence what to do if not.
package sqlitefile
