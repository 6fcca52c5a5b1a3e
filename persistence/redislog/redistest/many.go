package redistest

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// clusterSlots is how many slots a Cluster has.
const clusterSlots = 16384

// RunCluster starts a Cluster of n primaries, which stops when the test ends.
func RunCluster(tb testing.TB, n int) []*Server {
	tb.Helper()
	servers := make([]*Server, n)
	for i := range servers {
		servers[i] = Run(tb, Config{Args: []string{"--cluster-enabled", "yes", "--cluster-node-timeout", "2000"}})
	}
	ctx := tb.Context()
	for i, s := range servers {
		c := s.Client()
		defer c.Close()
		first, last := i*clusterSlots/n, (i+1)*clusterSlots/n-1
		if err := c.ClusterAddSlotsRange(ctx, first, last).Err(); err != nil {
			tb.Fatal(err)
		}
		if err := c.ClusterMeet(ctx, "127.0.0.1", strconv.Itoa(servers[0].Port())).Err(); err != nil {
			tb.Fatal(err)
		}
	}
	for _, s := range servers {
		await(tb, "the Cluster is whole", func(ctx context.Context) bool {
			c := s.Client()
			defer c.Close()
			info, err := c.ClusterInfo(ctx).Result()
			return err == nil && strings.Contains(info, "cluster_state:ok") &&
				strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d\r", n))
		})
	}
	return servers
}

// Watched is a primary and a replica that Sentinel watches.
type Watched struct {
	Name     string // of the primary
	Primary  *Server
	Replica  *Server
	Sentinel string // its address
}

// RunSentinel starts a primary, a replica that follows it, and a Sentinel that puts the replica in its place when it has
// been away for a second. They stop when the test ends.
func RunSentinel(tb testing.TB) *Watched {
	tb.Helper()
	w := &Watched{Name: "main", Primary: Run(tb, Config{})}
	w.Replica = Run(tb, Config{Args: []string{"--replicaof", "127.0.0.1", strconv.Itoa(w.Primary.Port())}})
	port, err := FreePort()
	if err != nil {
		tb.Fatal(err)
	}
	conf := filepath.Join(tb.TempDir(), "sentinel.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, "sentinel monitor %s 127.0.0.1 %d 1\n"+
		"sentinel down-after-milliseconds %[1]s 1000\nsentinel failover-timeout %[1]s 5000\n",
		w.Name, w.Primary.Port()), 0o600); err != nil {
		tb.Fatal(err)
	}
	s := Run(tb, Config{Port: port, sentinel: conf})
	w.Sentinel = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	await(tb, "Sentinel knows the replica", func(ctx context.Context) bool {
		c := s.Client()
		defer c.Close()
		known, err := c.Do(ctx, "SENTINEL", "replicas", w.Name).Slice()
		return err == nil && len(known) == 1 && w.follows(ctx)
	})
	return w
}

// follows tells whether the replica is in step with the primary.
func (w *Watched) follows(ctx context.Context) bool {
	c := w.Replica.Client()
	defer c.Close()
	role, err := c.Do(ctx, "ROLE").Slice()
	return err == nil && len(role) > 3 && role[0] == "slave" && role[3] == "connected"
}

// await waits until cond holds.
func await(tb testing.TB, what string, cond func(context.Context) bool) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), startWithin)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !cond(ctx) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			tb.Fatalf("waited in vain: %s", what)
		}
	}
}
