package history

import "strings"

// migration is one step of the schema. Its statements are written for both databases, with a word
// in braces where they differ: see inDialect. A migration that was released never changes.
type migration struct {
	version    int
	statements []string
	postgres   []string // in their place on Postgres, if it needs others
}

// migrations are all steps, by version: 1, 2, 3...
var migrations = []migration{
	{version: 1, statements: []string{createThreads, createAgentRuns, createRunState, createThreadMessages}},
	{version: 2, statements: []string{
		indexRunning, indexUnfinished,
		`CREATE INDEX idx_threads_activity ON threads (activity_at DESC, id DESC) WHERE deleted_at = 0`,
	}},
	{version: 3, statements: []string{
		createThreadAnswers,
		createQueuedRuns,
		createRunResults,
		`CREATE INDEX idx_queued_runs_thread ON queued_runs (thread_id, front DESC, id)`,
		`ALTER TABLE run_state ADD COLUMN pending_calls text NOT NULL DEFAULT ''`,
		`ALTER TABLE agent_runs ADD COLUMN discarded {int} NOT NULL DEFAULT 0`,
	}},
	{version: 4, statements: []string{
		createAgentRuns4, copyAgentRuns4, `DROP TABLE agent_runs`, `ALTER TABLE agent_runs_4 RENAME TO agent_runs`,
		indexRunning, indexUnfinished,
	}, postgres: []string{
		`ALTER TABLE agent_runs ADD COLUMN usage text NOT NULL DEFAULT ''`,
		`ALTER TABLE agent_runs ADD COLUMN pending_calls text NOT NULL DEFAULT ''`,
	}},
	{version: 5, statements: []string{
		createInstallation, `INSERT INTO installation (id) VALUES (lower(hex(randomblob(16))))`,
	}, postgres: []string{
		createInstallation, `INSERT INTO installation (id) VALUES (gen_random_uuid()::text)`,
	}},
	{version: 6, statements: append(alterThreads6,
		`UPDATE installation SET secret = lower(hex(randomblob(32)))`,
	), postgres: append(alterThreads6,
		`UPDATE installation SET secret = replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', '')`,
	)},
}

// alterThreads6 makes lists of the threads of one user. Their indexes hold whether a thread is archived, so that
// those that are can be passed over without a look at them.
var alterThreads6 = []string{
	`ALTER TABLE threads ADD COLUMN owner text NOT NULL DEFAULT ''`,
	`ALTER TABLE threads ADD COLUMN agent_id text NOT NULL DEFAULT ''`,
	`ALTER TABLE threads ADD COLUMN name text NOT NULL DEFAULT ''`,
	`ALTER TABLE threads ADD COLUMN archived_at {int} NOT NULL DEFAULT 0`,
	`ALTER TABLE threads ADD COLUMN revision {int} NOT NULL DEFAULT 0`,
	`UPDATE threads SET agent_id = COALESCE((SELECT substr(agent_id, 1, 256) FROM agent_runs
		WHERE agent_runs.thread_id = threads.id ORDER BY number LIMIT 1), '')`,
	`DROP INDEX idx_threads_activity`,
	`CREATE INDEX idx_threads_owner ON threads (owner, activity_at DESC, id DESC, archived_at) WHERE deleted_at = 0`,
	`CREATE INDEX idx_threads_agent ON threads (owner, agent_id, activity_at DESC, id DESC, archived_at) WHERE deleted_at = 0`,
	`ALTER TABLE installation ADD COLUMN secret text NOT NULL DEFAULT ''`,
}

const (
	// At most one run of a thread is unfinished: the rule, and the way to find them.
	indexRunning    = `CREATE UNIQUE INDEX idx_agent_runs_running ON agent_runs (thread_id) WHERE status = 'running'`
	indexUnfinished = `CREATE INDEX idx_agent_runs_unfinished ON agent_runs (id) WHERE status = 'running'`
)

const createSchemaVersion = `CREATE TABLE IF NOT EXISTS schema_version (
	version    {int} NOT NULL PRIMARY KEY,
	applied_at {int} NOT NULL
){strict}`

const createThreads = `CREATE TABLE threads (
	id          {key} NOT NULL PRIMARY KEY,
	last_run    {int} NOT NULL,
	title       text  NOT NULL DEFAULT '',
	created_at  {int} NOT NULL,
	activity_at {int} NOT NULL,
	deleted_at  {int} NOT NULL DEFAULT 0
){strict}`

// The long texts stand last, so that SQLite reads the particulars of a run without walking through its events.
const createAgentRuns = `CREATE TABLE agent_runs (
	id              {serial},
	thread_id       {key} NOT NULL,
	run_id          {key} NOT NULL,
	number          {int} NOT NULL,
	parent_run_id   text  NOT NULL DEFAULT '',
	previous_run_id text  NOT NULL DEFAULT '',
	agent_id        text  NOT NULL DEFAULT '',
	owner           text  NOT NULL DEFAULT '',
	token           {int} NOT NULL,
	created_at      {int} NOT NULL,
	version         {int} NOT NULL,
	status          text  NOT NULL,
	outcome         text  NOT NULL DEFAULT '',
	code            text  NOT NULL DEFAULT '',
	error           text  NOT NULL DEFAULT '',
	stopped_by      text  NOT NULL DEFAULT '',
	ended_at        {int} NOT NULL DEFAULT 0,
	last_seq        {int} NOT NULL DEFAULT 0,
	event_count     {int} NOT NULL DEFAULT 0,
	bytes           {int} NOT NULL DEFAULT 0,
	checksum        {int} NOT NULL DEFAULT 0,
	pending         text  NOT NULL DEFAULT '',
	input           text  NOT NULL,
	events          text  NOT NULL,
	UNIQUE (thread_id, run_id),
	UNIQUE (thread_id, number)
){strict}`

// createAgentRuns4 is agent_runs with usage, pending_calls, and discarded, before the long texts: SQLite adds columns behind them, where
// reading one means to walk through the events.
const createAgentRuns4 = `CREATE TABLE agent_runs_4 (
	id              {serial},
	thread_id       {key} NOT NULL,
	run_id          {key} NOT NULL,
	number          {int} NOT NULL,
	parent_run_id   text  NOT NULL DEFAULT '',
	previous_run_id text  NOT NULL DEFAULT '',
	agent_id        text  NOT NULL DEFAULT '',
	owner           text  NOT NULL DEFAULT '',
	token           {int} NOT NULL,
	created_at      {int} NOT NULL,
	version         {int} NOT NULL,
	discarded       {int} NOT NULL DEFAULT 0,
	status          text  NOT NULL,
	outcome         text  NOT NULL DEFAULT '',
	code            text  NOT NULL DEFAULT '',
	error           text  NOT NULL DEFAULT '',
	stopped_by      text  NOT NULL DEFAULT '',
	ended_at        {int} NOT NULL DEFAULT 0,
	last_seq        {int} NOT NULL DEFAULT 0,
	event_count     {int} NOT NULL DEFAULT 0,
	bytes           {int} NOT NULL DEFAULT 0,
	checksum        {int} NOT NULL DEFAULT 0,
	pending         text  NOT NULL DEFAULT '',
	pending_calls   text  NOT NULL DEFAULT '',
	usage           text  NOT NULL DEFAULT '',
	input           text  NOT NULL,
	events          text  NOT NULL,
	UNIQUE (thread_id, run_id),
	UNIQUE (thread_id, number)
){strict}`

const copyAgentRuns4 = `INSERT INTO agent_runs_4 (id, thread_id, run_id, number, parent_run_id, previous_run_id, agent_id, owner,
	token, created_at, version, discarded, status, outcome, code, error, stopped_by, ended_at, last_seq, event_count, bytes, checksum,
	pending, input, events)
SELECT id, thread_id, run_id, number, parent_run_id, previous_run_id, agent_id, owner,
	token, created_at, version, discarded, status, outcome, code, error, stopped_by, ended_at, last_seq, event_count, bytes, checksum,
	pending, input, events FROM agent_runs`

const createInstallation = `CREATE TABLE installation (
	id {key} NOT NULL PRIMARY KEY
){strict}`

const createRunState = `CREATE TABLE run_state (
	thread_id      {key} NOT NULL PRIMARY KEY,
	is_running     {int} NOT NULL DEFAULT 0,
	current_run_id text  NOT NULL DEFAULT '',
	server_id      text  NOT NULL DEFAULT '',
	updated_at     {int} NOT NULL,
	pending        text  NOT NULL DEFAULT ''
){strict}`

const createThreadMessages = `CREATE TABLE thread_messages (
	thread_id  {key} NOT NULL,
	message_id {key} NOT NULL,
	PRIMARY KEY (thread_id, message_id)
){strict_keyed}`

const createThreadAnswers = `CREATE TABLE thread_answers (
	thread_id  {key} NOT NULL,
	kind       {key} NOT NULL,
	answer_key {key} NOT NULL,
	run_id     {key} NOT NULL,
	digest     text  NOT NULL DEFAULT '',
	PRIMARY KEY (thread_id, kind, answer_key)
){strict_keyed}`

const createRunResults = `CREATE TABLE run_results (
	thread_id {key} NOT NULL,
	number    {int} NOT NULL,
	place     {int} NOT NULL,
	content   text  NOT NULL,
	PRIMARY KEY (thread_id, number, place)
){strict}`

const createQueuedRuns = `CREATE TABLE queued_runs (
	id         {serial},
	thread_id  {key} NOT NULL,
	run_id     {key} NOT NULL,
	agent_id   text  NOT NULL DEFAULT '',
	after_run  {int} NOT NULL,
	title      text  NOT NULL DEFAULT '',
	queued_by  text  NOT NULL DEFAULT '',
	created_at {int} NOT NULL,
	front      {int} NOT NULL DEFAULT 0,
	replaces   text  NOT NULL DEFAULT '',
	input      text  NOT NULL,
	UNIQUE (thread_id, run_id)
){strict}`

// The words of the statements that the databases have different names for. Keys compare by bytes on both.
var (
	sqliteWords = strings.NewReplacer(
		"{serial}", "INTEGER PRIMARY KEY AUTOINCREMENT",
		"{int}", "INTEGER",
		"{key}", "TEXT",
		"{strict}", " STRICT",
		"{strict_keyed}", " STRICT, WITHOUT ROWID",
	)
	postgresWords = strings.NewReplacer(
		"{serial}", "bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY",
		"{int}", "bigint",
		"{key}", `text COLLATE "C"`,
		"{strict}", "",
		"{strict_keyed}", "",
	)
)

// inDialect is a statement in the words of one database.
func inDialect(dialect, statement string) string {
	if dialect == postgresDialect {
		return postgresWords.Replace(statement)
	}
	return sqliteWords.Replace(statement)
}
