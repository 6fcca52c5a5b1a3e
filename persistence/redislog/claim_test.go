package redislog_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/threadcast/threadcast/persistence/redislog"
)

func TestOneHistoryHasThePrefix(t *testing.T) {
	addr, prefix := sharedServer(t).Addr(), newPrefix()
	one, two := open(t, addr, prefix), open(t, addr, prefix)
	for _, node := range []*redislog.Log{one, two, one} {
		if err := node.Claim(t.Context(), "a"); err != nil {
			t.Error(err)
		}
	}
	err := two.Claim(t.Context(), "b")
	if !errors.Is(err, redislog.ErrForeign) || !strings.Contains(err.Error(), prefix+"history") {
		t.Errorf("another history: %v", err)
	}
	if err := open(t, addr, newPrefix()).Claim(t.Context(), "b"); err != nil {
		t.Errorf("under another prefix: %v", err)
	}
}
