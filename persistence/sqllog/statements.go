package sqllog

import "strings"

// What the committer executes.
const (
	insertRun    = `INSERT INTO log_runs (ref, thread, run, run_id) VALUES (?, ?, ?, ?)`
	deleteRun    = `DELETE FROM log_runs WHERE ref = ?`
	updateDropAt = `UPDATE log_runs SET drop_at = ? WHERE ref = ?`

	insertGarbage = `INSERT INTO log_garbage (ref) VALUES (?)`
	deleteGarbage = `DELETE FROM log_garbage WHERE ref = ?`
	deleteEntries = `DELETE FROM log_entries WHERE ref = ? AND seq <= ?`
	deleteRecent  = `DELETE FROM log_recent WHERE id < ?`
	forgetRecent  = `DELETE FROM log_recent WHERE ref = ?`

	insertLease = `INSERT INTO log_leases (thread, run_id, owner, token, acquired) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (thread) DO UPDATE SET run_id = excluded.run_id, owner = excluded.owner,
			token = excluded.token, acquired = excluded.acquired, stop_by = NULL`
	deleteLease  = `DELETE FROM log_leases WHERE thread = ?`
	updateStopBy = `UPDATE log_leases SET stop_by = ? WHERE thread = ?`
	updateToken  = `UPDATE log_meta SET value = ? WHERE name = 'token'`
)

// What reads.
const (
	selectPage = `SELECT seq, kind, data FROM log_entries WHERE ref = ? AND seq > ? ORDER BY seq LIMIT ?`

	selectToken = `SELECT value FROM log_meta WHERE name = 'token'`
	selectRuns  = `SELECT r.ref, r.thread, r.run, r.run_id, r.drop_at, e.seq, e.kind
		FROM log_runs r LEFT JOIN log_entries e ON e.ref = r.ref AND e.seq = (
			SELECT max(seq) FROM log_entries WHERE ref = r.ref)
		ORDER BY r.thread, r.run`
	selectRecent = `SELECT id, ref, seq, kind, data FROM log_recent ORDER BY id`
	selectLeases = `SELECT thread, run_id, owner, token, acquired, stop_by FROM log_leases`

	// The latest ref of a run that was dropped, or 0.
	selectDropped = `SELECT coalesce(max(ref), 0) FROM log_garbage`
	selectGarbage = `SELECT ref FROM log_garbage LIMIT 1`

	// The seq up to which the next chunk of a dropped run goes: so many entries, or so many bytes, but at least one.
	selectChunk = `SELECT max(seq) FROM (
		SELECT seq, sum(length(data)) OVER w AS bytes, row_number() OVER w AS n FROM log_entries
		WHERE ref = ? WINDOW w AS (ORDER BY seq) ORDER BY seq LIMIT ?
	) WHERE bytes <= ? OR n = 1`
)

// table is one of the tables of entries, as far as inserting is concerned.
type table struct {
	into    string
	columns int
}

var (
	recentTable  = table{into: "log_recent (id, ref, seq, kind, data)", columns: 5}
	entriesTable = table{into: "log_entries (ref, seq, kind, data)", columns: 4}
)

// insertSizes are the numbers of rows that one statement inserts, the greatest first.
var insertSizes = []int{32, 8, 1}

// insert is the statement that inserts n rows. What the index does not know of is not in the log: should there be such
// rows, they are replaced.
func (t table) insert(n int) string {
	row := "(?" + strings.Repeat(", ?", t.columns-1) + ")"
	return "INSERT OR REPLACE INTO " + t.into + " VALUES " + row + strings.Repeat(", "+row, n-1)
}

// statements are all that the committer executes often.
func statements() []string {
	all := []string{
		insertRun, deleteRun, updateDropAt, insertGarbage, deleteGarbage, deleteEntries, deleteRecent, forgetRecent,
		insertLease, deleteLease, updateStopBy, updateToken,
	}
	for _, n := range insertSizes {
		all = append(all, recentTable.insert(n), entriesTable.insert(n))
	}
	return all
}
