package redislog

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/threadcast/threadcast/persistence/thread"
)

// ParseURL reads where Redis is from a URL. The error wraps [thread.ErrBadInput], and does not tell the password.
//
//	redis://user:password@host:6379/0                  a server (rediss: with TLS)
//	unix:///run/redis.sock                             a server on the same machine
//	redis://host:26379?master_name=main&addr=host2:26379   Sentinel: its addresses, and the name of the primary
//	redis://host:6379?addr=host2:6379&addr=host3:6379  a Cluster; of a single address with cluster=true
//
// With Sentinel, user and password are those of the servers, and of Sentinel itself if sentinel_auth=true.
func ParseURL(text string) (redis.UniversalOptions, error) {
	var o redis.UniversalOptions
	u, err := url.Parse(text)
	if err != nil {
		return o, fmt.Errorf("%w: the URL of Redis cannot be read; it is such as redis://user:password@host:6379/0, where of what is not a letter or "+
			"a digit # is written %%23, / %%2F, @ %%40", thread.ErrBadInput)
	}
	q := u.Query()
	o.MasterName, o.IsClusterMode = q.Get("master_name"), q.Get("cluster") == "true"
	more, auth := q["addr"], q.Get("sentinel_auth") == "true"
	for _, own := range []string{"master_name", "cluster", "addr", "sentinel_auth"} {
		q.Del(own)
	}
	u.RawQuery = q.Encode()
	one, err := redis.ParseURL(u.String())
	if err != nil {
		return o, fmt.Errorf("%w: the URL of Redis: %s; it is such as redis://host:6379/0", thread.ErrBadInput, strings.TrimPrefix(err.Error(), "redis: "))
	}
	o.Addrs = append([]string{one.Addr}, more...)
	o.IsClusterMode = o.IsClusterMode || len(more) > 0 && o.MasterName == ""
	o.DB, o.Username, o.Password, o.TLSConfig, o.ClientName = one.DB, one.Username, one.Password, one.TLSConfig, one.ClientName
	if auth {
		o.SentinelUsername, o.SentinelPassword = o.Username, o.Password
	}
	if o.IsClusterMode && o.DB != 0 {
		return o, fmt.Errorf("%w: the URL of Redis: a Cluster has no database %d", thread.ErrBadInput, o.DB)
	}
	return o, nil
}
