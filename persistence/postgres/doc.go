// Package postgres opens the Postgres database that the nodes of a cluster keep their history in.
//
// It stands below package history, as package sqlitefile does for an SQLite file: it makes the pool of connections, with
// limits that keep a node that hangs from holding up the others, and says in a sentence what to do if the database
// cannot be used. No error of it shows a password.
package postgres
