package sqllog

import "strings"

// What the committer executes.
const (
	insertRun    = `INSERT OR REPLACE INTO log_runs (thread, run, run_id) VALUES (?, ?, ?)`
	deleteRun    = `DELETE FROM log_runs WHERE thread = ? AND run = ?`
	updateDropAt = `UPDATE log_runs SET drop_at = ? WHERE thread = ? AND run = ?`

	insertGarbage = `INSERT INTO log_garbage (thread, run) VALUES (?, ?) ON CONFLICT DO NOTHING`
	deleteGarbage = `DELETE FROM log_garbage WHERE thread = ? AND run = ?`
	deleteEntries = `DELETE FROM log_entries WHERE thread = ? AND run = ? AND seq <= ?`

	insertLease = `INSERT INTO log_leases (thread, run_id, owner, token, acquired) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (thread) DO UPDATE SET run_id = excluded.run_id, owner = excluded.owner,
			token = excluded.token, acquired = excluded.acquired, stop_by = NULL`
	deleteLease  = `DELETE FROM log_leases WHERE thread = ?`
	updateStopBy = `UPDATE log_leases SET stop_by = ? WHERE thread = ?`
	updateToken  = `UPDATE log_meta SET value = ? WHERE name = 'token'`
)

// What reads.
const (
	selectPage = `SELECT seq, kind, data FROM log_entries
		WHERE thread = ? AND run = ? AND seq > ? ORDER BY seq LIMIT ?`
	selectToken = `SELECT value FROM log_meta WHERE name = 'token'`
	selectRuns  = `SELECT r.thread, r.run, r.run_id, r.drop_at, e.seq, e.kind
		FROM log_runs r JOIN log_entries e ON e.thread = r.thread AND e.run = r.run AND e.seq = (
			SELECT max(seq) FROM log_entries WHERE thread = r.thread AND run = r.run)
		ORDER BY r.thread, r.run`
	selectLeases  = `SELECT thread, run_id, owner, token, acquired, stop_by FROM log_leases`
	selectGarbage = `SELECT thread, run FROM log_garbage LIMIT 1`

	// The seq up to which the next chunk of a dropped run goes: so many entries, or so many bytes, but at least one.
	selectChunk = `SELECT max(seq) FROM (
		SELECT seq, sum(length(data)) OVER w AS bytes, row_number() OVER w AS n FROM log_entries
		WHERE thread = ? AND run = ? WINDOW w AS (ORDER BY seq) ORDER BY seq LIMIT ?
	) WHERE bytes <= ? OR n = 1`
)

// insertSizes are the numbers of entries that one statement inserts, the greatest first.
var insertSizes = []int{32, 8, 1}

// insertEntries is the statement that inserts n entries. What the index does not know of is not in the log: should
// there be such rows, they are replaced.
func insertEntries(n int) string {
	return "INSERT OR REPLACE INTO log_entries (thread, run, seq, kind, data) VALUES (?, ?, ?, ?, ?)" +
		strings.Repeat(", (?, ?, ?, ?, ?)", n-1)
}

// statements are all that the committer executes often.
func statements() []string {
	all := []string{
		insertRun, deleteRun, updateDropAt, insertGarbage, deleteGarbage, deleteEntries,
		insertLease, deleteLease, updateStopBy, updateToken,
	}
	for _, n := range insertSizes {
		all = append(all, insertEntries(n))
	}
	return all
}
