package main

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/web"
)

func TestTheHeaderSaysWhoCalls(t *testing.T) {
	if identify("") != nil {
		t.Error("somebody has to say who they are although no header is named")
	}
	who := identify("X-User")
	for name, tt := range map[string]struct {
		values []string
		want   thread.User
		err    error
	}{
		"a name":             {[]string{"alice"}, "alice", nil},
		"any name":           {[]string{"ünï <a@b>"}, "ünï <a@b>", nil},
		"none":               {nil, "", web.ErrUnidentified},
		"an empty one":       {[]string{""}, "", web.ErrUnidentified},
		"two":                {[]string{"alice", "bob"}, "", web.ErrUnidentified},
		"one that is none":   {[]string{"a\tb"}, "", thread.ErrBadInput},
		"one that is longer": {[]string{strings.Repeat("x", thread.MaxID+1)}, "", thread.ErrBadInput},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/api/threads", nil)
			r.Header["X-User"] = tt.values
			got, err := who(r)
			if !errors.Is(err, tt.err) || err == nil && got != tt.want {
				t.Errorf("got %q, %v", got, err)
			}
			if tt.err == web.ErrUnidentified && !strings.Contains(err.Error(), "X-User") {
				t.Errorf("%v does not name the header", err)
			}
		})
	}
}

func TestTheNameOfTheHeaderIsChecked(t *testing.T) {
	for name, ok := range map[string]bool{"X-User": true, "remote_user": true, "": true, "X User": false, "X-User:": false, "ü": false} {
		if _, err := load([]string{"--user-header", name}, variables(nil)); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}
