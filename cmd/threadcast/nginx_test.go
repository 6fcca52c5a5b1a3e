package main_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/threadcast/threadcast/cmd/threadcast/loadtest"
	"github.com/threadcast/threadcast/persistence/redislog/redistest"
	"github.com/threadcast/threadcast/web/webtest"
)

// nginxPath returns the program, or leaves the test out.
func nginxPath(t *testing.T) string { return programPath(t, "nginx") }

// programPath returns where a program is. It leaves the test out in a run without it: when the variable THREADCAST_WITHOUT names
// it, or in short mode where it is not installed.
func programPath(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		path, err = exec.LookPath("/usr/sbin/" + name) // not in everybody's PATH
	}
	without := strings.FieldsFunc(os.Getenv("THREADCAST_WITHOUT"), func(r rune) bool { return r == ',' || r == ' ' })
	switch {
	case slices.Contains(without, name), err != nil && testing.Short():
		t.Skip("left out: it needs " + name)
	case err != nil:
		t.Fatalf("this test needs %s (apt-get install %s): %v", name, name, err)
	}
	return path
}

// TestNodesBehindNginx puts three nodes behind one nginx that hands requests out in turn, as docs/nginx.md shows it.
func TestNodesBehindNginx(t *testing.T) {
	nginxPath(t)
	c := startCluster(t, 3, "--ping", "1s", "--log-level", "warn")
	p := behindNginx(t, c.nodes...)
	t.Run("sockets upgrade on every node", func(t *testing.T) { spread(t, c, p) })
	t.Run("a silent agent keeps its viewers", func(t *testing.T) { silence(t, c, p) })
	t.Run("the API and the page are there", func(t *testing.T) { throughNginx(t, c, p) })
	t.Run("streams come event by event, and resume", func(t *testing.T) { streamsThroughNginx(t, c, p) })
	t.Run("a stream is cut by a node that leaves, and resumes on another", func(t *testing.T) { cutThroughNginx(t, c, p) })
	t.Run("viewers resume on any node", func(t *testing.T) {
		report := p.crowd(10, 5)
		measured(t, "%d runs through nginx, %d deliveries, %d resumes", report.Runs.Accepted, report.Deliveries, report.Returns.Resumes)
		if !report.OK() || report.Returns.Resumes == 0 || report.Returns.Reconnects > 0 {
			t.Errorf("the load came out so:\n%+v", report)
		}
	})
	t.Run("a node that is gone is passed over", func(t *testing.T) {
		c.nodes[2].kill()
		if report := p.crowd(6, 3); !report.OK() {
			t.Errorf("the load came out so:\n%+v", report)
		}
	})
}

// crowd runs as many threads, whose viewers all cut their connections and resume.
func (n *node) crowd(threads, viewers int) loadtest.Report {
	n.t.Helper()
	cfg := loadtest.Defaults()
	cfg.URLs, cfg.Threads, cfg.Viewers, cfg.Restless, cfg.Stop, cfg.Patience = []string{n.url}, threads, viewers, 100, 20, patience
	cfg.Emit = loadtest.Emit{Count: 100, Rate: 50, Bytes: 300}
	report, err := loadtest.Run(context.Background(), cfg)
	if err != nil {
		n.t.Fatal(err)
	}
	return report
}

// spread opens sockets one after the other. None of them comes with anything that would tell it from the others.
func spread(t *testing.T, c *cluster, p *node) {
	const sockets = 30
	before := map[*node]int{}
	for _, n := range c.nodes {
		before[n] = n.atRest()
	}
	s := &stage{T: t, ctx: t.Context(), node: p}
	for range sockets {
		s.watch("spread", nil)
	}
	for _, n := range c.nodes {
		if got := n.sockets() - before[n]; got < sockets/len(c.nodes)-2 {
			t.Errorf("of %d sockets the node %s has %d", sockets, n.addr, got)
		}
	}
}

// silence lets an agent be silent for five times as long as nginx has patience: as five minutes are to a minute. A node that pings less
// often than that loses its viewer, which shows that nginx does what it is there for.
func silence(t *testing.T, c *cluster, p *node) {
	long := time.Duration(sized(5, 2)) * nginxTimeout
	s := &stage{T: t, ctx: t.Context(), node: p}
	seldom := &stage{T: t, ctx: t.Context(), node: behindNginx(t, c.add("--ping", "20s"))}
	var viewers []*viewer
	for range 6 {
		viewers = append(viewers, s.watch("silent", raw))
	}
	control := seldom.watch("silent", raw)
	if err := p.tryRun("silent", load("r1", 5, 0, 100, true)); err != nil {
		t.Fatal(err)
	}
	for _, v := range append(viewers, control) {
		s.must(v.until(has(7)))
	}
	quiet, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	began := time.Now()
	if _, err := control.client.Closed(quiet); err != nil {
		t.Errorf("a viewer whose node seldom pings: %v", err)
	}
	lost := time.Since(began)
	for i, v := range viewers {
		if code, err := v.client.Closed(quiet); err == nil {
			t.Errorf("viewer %d lost its socket after %s, code %d", i, time.Since(began), code)
		}
	}
	var stopped struct{ Stopped bool }
	if code := p.do(http.MethodPost, threadPath("silent")+"/stop", nil, &stopped); code != http.StatusOK || !stopped.Stopped {
		t.Errorf("stop was answered %d, %+v", code, stopped)
	}
	for _, v := range viewers {
		s.must(v.until(webtest.Ended("r1")))
	}
	measured(t, "an agent silent for %s behind a proxy with a timeout of %s, ping 1s: no viewer lost; with a ping every 20s lost after %s",
		time.Since(began).Round(time.Second), nginxTimeout, lost.Round(10*time.Millisecond))
}

// throughNginx uses what is not the socket.
func throughNginx(t *testing.T, c *cluster, p *node) {
	const id = "a/b?c d%ü"
	big := load("r1", 20, 0, 100, false)
	big["messages"] = says("u1", strings.Repeat("long ", 600_000))
	if err := p.tryRun(id, big); err != nil {
		t.Fatal(err)
	}
	if info := p.ended(id, "r1"); info.State != "finished" {
		t.Errorf("the run is %+v", info)
	}
	verify(t, "the record through nginx", allEvents(p.record(id, "", "raw")))
	for _, path := range []string{"/", "/t/x", "/api/agents", "/healthz"} {
		status, got, err := p.request(http.MethodGet, path, nil)
		_, want, errDirect := c.nodes[0].request(http.MethodGet, path, nil)
		if err != nil || errDirect != nil || status != http.StatusOK || !bytes.Equal(got, want) {
			t.Errorf("GET %s is answered %d, not as by a node: %.200s", path, status, got)
		}
	}
	for origin, want := range map[string]int{p.url: 0, "http://example.org": http.StatusForbidden} {
		socket, err := p.dial(&webtest.Options{Header: http.Header{"Origin": {origin}}})
		var refused *webtest.Refused
		if errors.As(err, &refused); refused == nil && want != 0 || refused != nil && refused.HTTP != want {
			t.Errorf("a socket for a page of %s: %v", origin, err)
		}
		if err == nil {
			socket.Drop()
		}
	}
}

// around is what stands around the documented file: it lets nginx run as anybody, in the folder of the test, and makes its
// timeouts a twentieth of what they are by default. None of them may be in the documented file.
const around = `
pid nginx.pid;
error_log stderr warn;
worker_processes 1;
events { worker_connections 4096; }
http {
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    proxy_read_timeout 3s;
    proxy_send_timeout 3s;
    include threadcast.conf;
}
`

// nginxTimeout is how long the nginx of the tests leaves a silent connection open.
const nginxTimeout = 3 * time.Second

// behindNginx starts nginx with the documented file in front of the nodes, and returns it as if it were one of them.
func behindNginx(t *testing.T, nodes ...*node) *node {
	t.Helper()
	program, dir := nginxPath(t), t.TempDir()
	port, err := redistest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "threadcast.conf"), documentedNginx(t, port, nodes))
	write(t, filepath.Join(dir, "nginx.conf"), around)
	p := &node{t: t, dir: dir, addr: "127.0.0.1:" + strconv.Itoa(port), stdout: &output{}, stderr: &output{}, exited: make(chan struct{})}
	p.url = "http://" + p.addr
	p.cmd = exec.Command(program, "-p", dir, "-c", "nginx.conf", "-e", "stderr", "-g", "daemon off; master_process off;")
	p.cmd.Stdout, p.cmd.Stderr = p.stdout, p.stderr
	endWithParent(p.cmd)
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start nginx: %v", err)
	}
	go func() {
		defer close(p.exited)
		_ = p.cmd.Wait() // how it ended is in cmd.ProcessState
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may be gone already
		<-p.exited
		if client.CloseIdleConnections(); t.Failed() {
			t.Logf("nginx printed:\n%s", p.stderr)
		}
	})
	eventually(t, readyTimeout, "nginx answers", func() bool {
		if p.gone() {
			t.Fatalf("nginx ended: %s", p.stderr)
		}
		status, _, err := p.request(http.MethodGet, "/readyz", nil)
		return err == nil && status == http.StatusOK
	})
	return p
}

// documentedNginx returns the file that docs/nginx.md shows, for this port and these nodes, three at most.
func documentedNginx(t *testing.T, port int, nodes []*node) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/nginx.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```nginx\n(.*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatal("docs/nginx.md shows no file")
	}
	conf := string(block[1])
	for _, line := range []string{"server 127.0.0.1:8081;", "server 127.0.0.1:8082;", "server 127.0.0.1:8083;", "listen 8080;"} {
		if strings.Count(conf, line) != 1 {
			t.Fatalf("docs/nginx.md lacks the line %q", line)
		}
	}
	if strings.Contains(conf, "_timeout") {
		t.Fatal("docs/nginx.md sets a timeout: it promises that the default ones do")
	}
	for i := range 3 {
		line, server := "    server 127.0.0.1:808"+strconv.Itoa(i+1)+";\n", ""
		if i < len(nodes) {
			server = "    server " + nodes[i].addr + ";\n"
		}
		conf = strings.Replace(conf, line, server, 1)
	}
	return strings.Replace(conf, "listen 8080;", "listen 127.0.0.1:"+strconv.Itoa(port)+";", 1)
}
