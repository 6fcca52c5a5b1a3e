package memlog_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/threadcast/threadcast/persistence/logtest"
	"github.com/threadcast/threadcast/persistence/memlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	logtest.Run(t, func(t *testing.T) logtest.Log {
		log := memlog.New()
		t.Cleanup(func() { log.Close() })
		return log
	})
}
