package logtest

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/threadcast/threadcast/persistence/losslesstest"
	"github.com/threadcast/threadcast/persistence/thread"
)

var bytesChecks = []check{
	{"entries keep their bytes", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 1)
		f := follow(t, log, "t", thread.Cursor{})
		for _, data := range nastyBytes() {
			a.append(thread.Entry{Run: 1, RunID: runID(1), Seq: a.seq + 1, Kind: thread.KindEvent, Data: data})
		}
		end := endEntry(1, a.seq+1)
		end.Data = []byte("\x00 not even JSON")
		a.append(end)
		sameBytes(t, readAll(t, log, "t"), a.wrote)
		sameBytes(t, f.await(len(a.wrote)), a.wrote)
		sameBytes(t, follow(t, log, "t", thread.Cursor{}).await(len(a.wrote)), a.wrote)
	}},
	{"ids are kept as they are", func(t *testing.T, log Log) {
		ids := []thread.ID{"Thread", "thread", "thread ", "th%ead", "th_ead", "{thread}", "thrèad", "thre\u0300ad",
			"'; DROP TABLE log_entries; --", thread.ID(strings.Repeat("x", thread.MaxID)), "日本語", "a:b/c?d#e*"}
		for i, id := range ids {
			a := begin(t, log, id, uint64(i+1))
			a.add(i + 1)
		}
		for i, id := range ids {
			holds(t, log, id, events(uint64(i+1), 1, uint64(i+1)))
		}
	}},
	{"run ids are kept as they are", func(t *testing.T, log Log) {
		for i, id := range []thread.RunID{"Run", "run", "r%n", "r\"'n", "ラン", thread.RunID(strings.Repeat("y", thread.MaxID))} {
			run := uint64(i + 1)
			lease := acquire(t, log, thread.Claim{Thread: "t", RunID: id, Owner: "node-a"}, 0)
			if lease.RunID != id {
				t.Fatalf("the lease is for run %q, want %q", lease.RunID, id)
			}
			e := event(run, 1)
			e.RunID = id
			a := author{t: t, log: log, lease: lease, run: run}
			a.append(e)
			got, err := log.Read(t.Context(), "t", thread.Cursor{Run: run}, 10)
			if err != nil {
				t.Fatal(err)
			}
			sameEntries(t, got, a.wrote)
		}
	}},
}

// nastyBytes are what a log may be tempted to change.
func nastyBytes() [][]byte {
	random := make([]byte, 4096)
	dice := rand.NewChaCha8([32]byte{7})
	dice.Read(random)
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	all := [][]byte{
		{}, {0}, []byte("a\x00b\x00"), []byte("\xff\xfe not UTF-8 \xc0\x80"), every, random,
		[]byte("{\n  \"pretty\": true\n}\n"), []byte("line\u2028separator\r\n"),
		[]byte("123"), []byte("1.50"), []byte("2024-01-02 03:04:05"), []byte(" padded "),
		bytes.Repeat([]byte("0123456789abcdef"), 1<<16),
	}
	for _, text := range append(losslesstest.Texts(), losslesstest.NotUTF8()...) {
		all = append(all, []byte(text.JSON))
	}
	return all
}

// sameBytes is sameEntries for data that a message should not print.
func sameBytes(t *testing.T, got, want []thread.Entry) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %d entries, want %d", len(got), len(want))
	}
	for i, e := range got {
		if e.Cursor() != want[i].Cursor() || e.Kind != want[i].Kind || e.RunID != want[i].RunID {
			t.Fatalf("entry %d is %s of kind %d, want %s of kind %d", i, e.Cursor(), e.Kind, want[i].Cursor(), want[i].Kind)
		}
		if !bytes.Equal(e.Data, want[i].Data) {
			t.Fatalf("entry %s: %d bytes came back as other %d bytes", e.Cursor(), len(want[i].Data), len(e.Data))
		}
	}
}
