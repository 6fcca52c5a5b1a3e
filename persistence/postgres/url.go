package postgres

import (
	"fmt"
	"maps"
	"net"
	neturl "net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/threadcast/threadcast/persistence/thread"
)

// The deadlines of a connection's making, and of its silence.
const (
	connectTimeout = 5 * time.Second
	idleTime       = 5 * time.Minute
)

// keepAlive finds a dead link to a server in half a minute.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 4}

// IsURL tells whether s names a Postgres database, rather than a file.
func IsURL(s string) bool {
	return strings.HasPrefix(s, "postgres://") || strings.HasPrefix(s, "postgresql://")
}

// parse reads a URL. What is wrong with it is not repeated, since a password may be a part of that.
func parse(url string, opts Options) (target, error) {
	if !IsURL(url) {
		return target{}, fmt.Errorf("%w: the address of a Postgres database begins with postgres://", thread.ErrBadInput)
	}
	params, err := parameters(url)
	if err != nil {
		return target{}, err
	}
	conn, err := pgx.ParseConfig(url)
	if err != nil {
		return target{}, unreadable("one of its parameters, or of the variables PG*, has a value that is none")
	}
	t := target{conn: conn, maxConns: opts.MaxConns, lifetime: opts.Lifetime, idleTime: idleTime}
	if err := t.limit(conn.RuntimeParams); err != nil {
		return target{}, err
	}
	defaults := map[string]string{
		"application_name":                    "threadcast",
		"statement_timeout":                   millis(opts.StatementTimeout),
		"lock_timeout":                        millis(opts.LockTimeout),
		"idle_in_transaction_session_timeout": millis(opts.IdleInTransaction),
	}
	maps.Copy(defaults, conn.RuntimeParams)
	defaults["client_encoding"] = "UTF8"
	conn.RuntimeParams = defaults
	if !params.Has("default_query_exec_mode") {
		// No statement is kept by a connection: so another node may change the schema, and a pooler stand between.
		conn.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	if !params.Has("target_session_attrs") {
		conn.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	if !params.Has("connect_timeout") {
		conn.ConnectTimeout = connectTimeout
	}
	dialer := net.Dialer{KeepAliveConfig: keepAlive}
	conn.DialFunc = dialer.DialContext
	return t, nil
}

// parameters are those behind the question mark.
func parameters(url string) (neturl.Values, error) {
	u, err := neturl.Parse(url)
	if err != nil {
		return nil, unreadable("characters such as / ? # @ % of a user or a password are written as %2F %3F %23 %40 %25")
	}
	return u.Query(), nil
}

func unreadable(why string) error {
	return fmt.Errorf("%w: the URL of the Postgres database cannot be read: %s", thread.ErrBadInput, why)
}

// limit takes the parameters of the pool, named as pgxpool's, out of those for the server.
func (t *target) limit(params map[string]string) error {
	if s, ok := params["pool_max_conns"]; ok {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return unreadable("pool_max_conns is a number of at least 1")
		}
		t.maxConns = n
	}
	for name, field := range map[string]*time.Duration{
		"pool_max_conn_lifetime": &t.lifetime, "pool_max_conn_idle_time": &t.idleTime,
	} {
		if s, ok := params[name]; ok {
			d, err := time.ParseDuration(s)
			if err != nil || d <= 0 {
				return unreadable(name + " is a duration such as 5m")
			}
			*field = d
		}
	}
	for _, name := range []string{"pool_max_conns", "pool_max_conn_lifetime", "pool_max_conn_idle_time"} {
		delete(params, name)
	}
	return nil
}

func millis(d time.Duration) string { return strconv.FormatInt(max(d.Milliseconds(), 1), 10) }
