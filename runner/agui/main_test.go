package agui_test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "200"); err != nil { // the command line may say otherwise
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
