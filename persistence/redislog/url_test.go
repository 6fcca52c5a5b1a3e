package redislog_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/threadcast/threadcast/persistence/redislog"
	"github.com/threadcast/threadcast/persistence/thread"
)

func TestParseURL(t *testing.T) {
	type want struct {
		addrs            []string
		master, password string
		db               int
		cluster, tls     bool
	}
	for text, w := range map[string]want{
		"redis://localhost":                        {addrs: []string{"localhost:6379"}},
		"redis://ann:secret@h:1/3":                 {addrs: []string{"h:1"}, password: "secret", db: 3},
		"rediss://:secret@h:1":                     {addrs: []string{"h:1"}, password: "secret", tls: true},
		"unix:///run/redis.sock":                   {addrs: []string{"/run/redis.sock"}},
		"redis://s1:26379?master_name=m&addr=s2:2": {addrs: []string{"s1:26379", "s2:2"}, master: "m"},
		"redis://c1:1?addr=c2:2&addr=c3:3":         {addrs: []string{"c1:1", "c2:2", "c3:3"}, cluster: true},
		"redis://c1:1?cluster=true":                {addrs: []string{"c1:1"}, cluster: true},
	} {
		o, err := redislog.ParseURL(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got := want{o.Addrs, o.MasterName, o.Password, o.DB, o.IsClusterMode, o.TLSConfig != nil}
		if !slices.Equal(got.addrs, w.addrs) || got.master != w.master || got.password != w.password ||
			got.db != w.db || got.cluster != w.cluster || got.tls != w.tls {
			t.Errorf("%s: got %+v, want %+v", text, got, w)
		}
	}
}

func TestParseURLRefuses(t *testing.T) {
	for _, text := range []string{
		"", "localhost:6379", "http://h", "redis://:secret@h:x", "redis://h/secret", "redis://h/1/2", "unix://",
		"redis://h?secret=1", "redis://h/2?cluster=true",
	} {
		_, err := redislog.ParseURL(text)
		if !errors.Is(err, thread.ErrBadInput) {
			t.Errorf("%q: got %v, want %v", text, err, thread.ErrBadInput)
		}
		if err != nil && strings.Contains(text, ":secret@") && strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: the error tells the password: %v", text, err)
		}
	}
}
