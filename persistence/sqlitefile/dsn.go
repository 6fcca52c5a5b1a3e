package sqlitefile

import (
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// walLimit is the size to which the write-ahead log is cut after it was moved to the file, in bytes.
const walLimit = 32 << 20

// writerDSN is the data source of the connection that writes. Synchronous NORMAL in WAL mode keeps every
// commit over a crash of the process; a crash of the machine may lose the latest ones, and never more than those.
func writerDSN(path string, opts Options) string {
	return dsn(path, opts.BusyTimeout, url.Values{
		"_txlock": {"immediate"},
		"_pragma": {
			"journal_mode(WAL)", "synchronous(NORMAL)", "foreign_keys(1)", "temp_store(MEMORY)",
			"cache_size(-16384)", "wal_autocheckpoint(4000)", "journal_size_limit(" + strconv.Itoa(walLimit) + ")",
		},
	})
}

// readerDSN is the data source of the connections that read.
func readerDSN(path string, opts Options) string {
	return dsn(path, opts.BusyTimeout, url.Values{
		"_pragma": {"query_only(1)", "foreign_keys(1)", "temp_store(MEMORY)", "cache_size(-8192)"},
	})
}

// dsn names the file as a URI, so that no character of its path means anything else, and never with a shared cache.
func dsn(path string, busy time.Duration, params url.Values) string {
	params.Set("_busy_timeout", strconv.FormatInt(max(busy.Milliseconds(), 1), 10))
	params.Set("_time_format", "sqlite")
	params.Set("_error_rc", "1")
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // a drive letter
	}
	uri := url.URL{Scheme: "file", Path: slashed, RawQuery: params.Encode()}
	return uri.String()
}
