package redistest

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
)

// Old starts a server that answers INFO as Redis of that version does, and hardly anything else. It returns its address, and
// ends it with the test.
func Old(tb testing.TB, version string) string {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { answer(c, "redis_version:"+version+"\r\n") })
		}
	})
	tb.Cleanup(func() {
		listener.Close()
		all.Wait()
	})
	return listener.Addr().String()
}

// answer answers until the client hangs up.
func answer(c net.Conn, info string) {
	defer c.Close()
	lines := bufio.NewReader(c)
	for {
		var args, size int
		if _, err := fmt.Fscanf(lines, "*%d\r\n", &args); err != nil {
			return
		}
		var words []string
		for range args {
			var word string
			if _, err := fmt.Fscanf(lines, "$%d\r\n%s\r\n", &size, &word); err != nil {
				return
			}
			words = append(words, word)
		}
		reply := "-ERR unknown command\r\n"
		switch strings.ToLower(words[0]) {
		case "info":
			reply = fmt.Sprintf("$%d\r\n%s\r\n", len(info), info)
		case "client":
			reply = "+OK\r\n"
		}
		if _, err := c.Write([]byte(reply)); err != nil {
			return
		}
	}
}
