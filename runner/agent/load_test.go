package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/threadcast/threadcast/runner"
	"github.com/threadcast/threadcast/runner/agent"
)

func loaded(emit string) runner.Input {
	return conversation("r1", 0, "tool", `,"forwardedProps":{"other":1,"emit":`+emit+`}`)
}

func TestLoad(t *testing.T) {
	for _, size := range []int{0, 150, 151, 5000, 1 << 20} {
		t.Run(fmt.Sprint(size, " bytes"), func(t *testing.T) {
			want := size
			if size == 0 {
				want = 150
			}
			var last int64
			n := 0
			run := loaded(fmt.Sprintf(`{"count":5,"bytes":%d}`, size))
			err := agent.NewDemo(agent.DemoOptions{}).Run(t.Context(), run, func(data []byte) error {
				var e struct{ Type, Delta string }
				if err := json.Unmarshal(data, &e); err != nil || e.Type != "TEXT_MESSAGE_CONTENT" {
					return err
				}
				var seq int
				var stamp int64
				if _, err := fmt.Sscanf(e.Delta, "#%d@%d;", &seq, &stamp); err != nil || seq != n || stamp <= last {
					t.Errorf("event %d is %.100s", n, data)
				}
				if len(data) != want {
					t.Errorf("event %d has %d bytes; want %d", n, len(data), want)
				}
				last = stamp
				n++
				return nil
			})
			if err != nil || n != 5 {
				t.Errorf("%d events came; the end is %v", n, err)
			}
		})
	}
}

func TestLoadIsLegal(t *testing.T) {
	s := mustFinish(t, loaded(`{"count":3}`))
	if len(s.events) != 7 {
		t.Errorf("the run is %v", s.types)
	}
	if s = mustFinish(t, loaded(`{"count":0}`)); len(s.events) != 4 {
		t.Errorf("a run of nothing is %v", s.types)
	}
}

func TestLoadIsNeverSmallerThanItsFrame(t *testing.T) {
	s := mustFinish(t, loaded(`{"count":3,"bytes":1}`))
	if len(s.events) != 7 {
		t.Errorf("the run is %v", s.types)
	}
}

func TestLoadKeepsItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if _, err := perform(t, agent.NewDemo(agent.DemoOptions{}), loaded(`{"count":501,"rate":100}`)); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("501 events at 100 a second took %v", took)
		}
	})
}

func TestLoadHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stopped := errors.New("stopped by somebody")
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error, 1)
		events := 0
		go func() {
			done <- agent.NewDemo(agent.DemoOptions{}).Run(ctx, loaded(`{"count":10,"hold":true}`), func([]byte) error { events++; return nil })
		}()
		<-time.After(time.Hour)
		synctest.Wait()
		if len(done) != 0 || events != 12 {
			t.Errorf("after an hour there are %d events, and %d ends", events, len(done))
		}
		cancel(stopped)
		if err := <-done; err != stopped {
			t.Errorf("Run returned %v; want the cause", err)
		}
	})
}

func TestLoadOutOfBounds(t *testing.T) {
	tests := map[string]string{
		"negative count": `{"count":-1}`, "great count": `{"count":10000001}`, "fraction": `{"count":1.5}`,
		"negative rate": `{"count":1,"rate":-1}`, "great rate": `{"count":1,"rate":1e7}`,
		"negative bytes": `{"count":1,"bytes":-1}`, "great bytes": `{"count":1,"bytes":1048577}`,
		"misspelt": `{"cuont":1}`, "no object": `5`,
	}
	for name, emit := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := perform(t, agent.NewDemo(agent.DemoOptions{}), loaded(emit))
			var failure *runner.AgentError
			if !errors.As(err, &failure) || failure.Code != "agent_bad_input" || len(s.events) != 0 {
				t.Errorf("Run returned %v after %d events", err, len(s.events))
			}
		})
	}
}

func TestForwardedPropsOfOthersDoNotMatter(t *testing.T) {
	for _, props := range []string{`5`, `[]`, `{}`, `{"emit":null}`, `"emit"`} {
		mustFinish(t, conversation("r1", 0, "hello", `,"forwardedProps":`+props))
	}
}

func BenchmarkLoad(b *testing.B) {
	d := agent.NewDemo(agent.DemoOptions{})
	b.ReportAllocs()
	in := loaded(fmt.Sprintf(`{"count":%d}`, 10_000))
	for b.Loop() {
		if err := d.Run(b.Context(), in, func([]byte) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
