package postgres_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/threadcast/threadcast/persistence/pgtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.Main(m)) }
