package sqllog_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/threadcast/threadcast/persistence/logtest"
	"github.com/threadcast/threadcast/persistence/sqlitefile"
	"github.com/threadcast/threadcast/persistence/sqllog"
)

func TestMain(m *testing.M) {
	if logtest.Child(openLog) {
		return
	}
	goleak.VerifyTestMain(m)
}

// store is a log with the file it is in.
type store struct {
	*sqllog.Log
	file *sqlitefile.File
}

// Close closes the log and then the file.
func (s *store) Close() error {
	if err := s.Log.Close(); err != nil {
		return err
	}
	return s.file.Close()
}

func openStore(dir string) (*store, error) {
	ctx := context.Background()
	file, err := sqlitefile.Open(ctx, filepath.Join(dir, "log.db"), sqlitefile.Options{})
	if err != nil {
		return nil, err
	}
	log, err := sqllog.New(ctx, file.Writer(), file.Reader(), sqllog.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		file.Close()
		return nil, err
	}
	return &store{Log: log, file: file}, nil
}

func openLog(dir string) (logtest.Log, error) {
	s, err := openStore(dir)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func setup(t testing.TB) *store {
	t.Helper()
	s, err := openStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

func TestConformance(t *testing.T) {
	logtest.Run(t, func(t *testing.T) logtest.Log { return setup(t) })
}

func TestDurable(t *testing.T) {
	logtest.RunDurable(t, openLog)
}
