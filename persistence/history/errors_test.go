package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/threadcast/threadcast/persistence/thread"
)

type sqliteError int

func (e sqliteError) Error() string { return fmt.Sprintf("sqlite error %d", int(e)) }
func (e sqliteError) Code() int     { return int(e) }

type postgresError string

func (e postgresError) Error() string    { return "postgres error " + string(e) }
func (e postgresError) SQLState() string { return string(e) }

func TestWhatIsTriedAgain(t *testing.T) {
	for err, want := range map[error]bool{
		sqliteError(5):           true,
		sqliteError(517):         true,
		sqliteError(6):           false,
		sqliteError(2067):        false,
		postgresError("40001"):   true,
		postgresError("40P01"):   true,
		postgresError("23505"):   false,
		errors.New("other"):      false,
		thread.ErrRunIDUsed:      false,
		gorm.ErrRecordNotFound:   false,
		context.DeadlineExceeded: false,
	} {
		if got := retryable(fmt.Errorf("commit: %w", err)); got != want {
			t.Errorf("%v is tried again: %t, want %t", err, got, want)
		}
	}
}

func TestWhatErrorsMean(t *testing.T) {
	for err, want := range map[error]error{
		sqliteError(5):                   thread.ErrUnavailable,
		sqliteError(11):                  thread.ErrCorrupt,
		sqliteError(267):                 thread.ErrCorrupt,
		sqliteError(26):                  thread.ErrCorrupt,
		sqliteError(18):                  thread.ErrTooLarge,
		sqliteError(13):                  thread.ErrUnavailable,
		postgresError("XX001"):           thread.ErrCorrupt,
		postgresError("54000"):           thread.ErrTooLarge,
		postgresError("57P01"):           thread.ErrUnavailable,
		gorm.ErrDuplicatedKey:            thread.ErrUnavailable,
		context.DeadlineExceeded:         thread.ErrUnavailable,
		thread.ErrLeaseLost:              thread.ErrLeaseLost,
		thread.ErrQueued:                 thread.ErrQueued,
		thread.ErrGap:                    thread.ErrGap,
		error(&thread.UnfinishedError{}): thread.ErrUnfinished,
	} {
		got := meaning(context.Background(), fmt.Errorf("commit: %w", err))
		if !errors.Is(got, want) || !errors.Is(got, err) {
			t.Errorf("%v means %v, want %v", err, got, want)
		}
		if want != thread.ErrUnavailable && errors.Is(got, thread.ErrUnavailable) {
			t.Errorf("%v means unavailable as well", err)
		}
	}
}

func TestACallersCauseIsKept(t *testing.T) {
	cause := errors.New("the run was stopped")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	if got := meaning(ctx, sqliteError(9)); !errors.Is(got, cause) {
		t.Errorf("error is %v, want %v", got, cause)
	}
	if got := pause(ctx, time.Hour); !errors.Is(got, cause) {
		t.Errorf("error is %v, want %v", got, cause)
	}
	if got := pause(context.Background(), time.Nanosecond); got != nil {
		t.Errorf("error is %v, want none", got)
	}
}

func TestSlowStatementsAreLogged(t *testing.T) {
	var log bytes.Buffer
	b := newLogger(slog.New(slog.NewTextHandler(&log, nil)))
	statement := func() (string, int64) { return "SELECT 1", 3 }
	b.Trace(context.Background(), time.Now(), statement, nil)
	if log.Len() > 0 {
		t.Errorf("a fast statement is logged: %s", &log)
	}
	b.Trace(context.Background(), time.Now().Add(-2*slow), statement, errors.New("x"))
	if line := log.String(); !strings.Contains(line, `sql="SELECT 1"`) || !strings.Contains(line, "rows=3") {
		t.Errorf("the line is %q", line)
	}
	text, values := b.(bridge).ParamsFilter(context.Background(), "SELECT ?", "secret")
	if text != "SELECT ?" || values != nil {
		t.Errorf("the log gets %q with %v", text, values)
	}
}

func TestWhatGORMSaysIsBridged(t *testing.T) {
	var log bytes.Buffer
	level := new(slog.LevelVar)
	b := newLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: level}))).LogMode(0)
	say := func() string {
		log.Reset()
		b.Info(context.Background(), "info %d", 1)
		b.Warn(context.Background(), "warning %d", 2)
		b.Error(context.Background(), "error %d", 3)
		return log.String()
	}
	if got := say(); !strings.Contains(got, `level=WARN msg="warning 2"`) || strings.Count(got, "\n") != 1 {
		t.Errorf("by default the log says %q, want the warning alone", got)
	}
	level.Set(slog.LevelDebug)
	if got := say(); !strings.Contains(got, `"info 1"`) || !strings.Contains(got, `"error 3"`) {
		t.Errorf("when debugging the log says %q, want all", got)
	}
}
