package main

import (
	"errors"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/threadcast/threadcast/persistence/pgtest"
	"github.com/threadcast/threadcast/persistence/thread"
)

func TestAHistoryInPostgres(t *testing.T) {
	address := pgtest.Database(t)
	log := slog.New(slog.DiscardHandler)
	s := &stores{}
	if err := s.postgres(t.Context(), config{Database: address}, log); err != nil {
		t.Fatal(err)
	}
	if _, err := s.past.StartRun(t.Context(), thread.Run{Thread: "t", ID: "r"}); err != nil {
		t.Error(err)
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	password, _ := u.User.Password()
	shown := strings.Join(s.where, "\n")
	if !strings.Contains(shown, u.Path+"  (history)") || strings.Contains(shown, password) || strings.Contains(shown, u.User.Username()) {
		t.Errorf("it shows %q of %s", shown, address)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.past.FindRun(t.Context(), "t", "r"); !errors.Is(err, thread.ErrUnavailable) {
		t.Errorf("after its end: %v", err)
	}
}

func TestStoresThatCannotBeOpenedAreClosed(t *testing.T) {
	s, err := openStores(t.Context(), config{Database: filepath.Join(t.TempDir(), "missing", "x.db")}, slog.New(slog.DiscardHandler))
	if err == nil {
		t.Error("a file in a folder that is none was opened")
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
}
