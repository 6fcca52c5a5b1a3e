package historytest

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/threadcast/threadcast/persistence/thread"
)

func testMessages(b *bench) {
	known := func(b *bench, id thread.ID, ids ...string) map[string]bool {
		b.Helper()
		got, err := b.Known(b.Context(), id, ids)
		b.want(nil, err)
		return got
	}
	b.run("messages of the input and of the events are known", func(b *bench) {
		b.same("before", map[string]bool{}, known(b, "t", "in-1"))
		run := newRun("t", "r1")
		run.Messages = []string{"in-1", "in-2", "in-1"}
		run = b.start(run)
		b.same("started", map[string]bool{"in-1": true, "in-2": true}, known(b, "t", "in-1", "in-2", "out-1"))
		run = finished(run)
		run.Messages = []string{"out-1", "in-2"}
		b.save(run)
		b.same("saved", map[string]bool{"in-1": true, "in-2": true, "out-1": true},
			known(b, "t", "in-1", "in-2", "out-1", "out-2", "out-2"))
		b.same("other thread", map[string]bool{}, known(b, "u", "in-1"))
	})
	b.run("a refused run leaves no messages", func(b *bench) {
		b.start(newRun("t", "r1"))
		run := newRun("t", "r2")
		run.Messages = []string{"m"}
		_, err := b.StartRun(b.Context(), run)
		b.want(thread.ErrUnfinished, err)
		b.same("known", map[string]bool{}, known(b, "t", "m"))
	})
	b.run("any text is an id", func(b *bench) {
		long := strings.Repeat("long", 5000)
		run := newRun("t", "r1")
		run.Messages = []string{"", "a\x00b", "\xff", "M", `"q"`, `\`, "e\u0301", "sha256:" + strings.Repeat("0", 64), long, long + "x"}
		b.start(run)
		want := map[string]bool{}
		for _, m := range run.Messages {
			want[m] = true
		}
		sum := sha256.Sum256([]byte(long))
		others := []string{"sha256:" + hex.EncodeToString(sum[:]), "a\x00c", "a", "\xfe", "m", `q`, `\\`, "é", "sha256:" + strings.Repeat("1", 64), long + "y"}
		b.same("known", want, known(b, "t", append(others, run.Messages...)...))
	})
	b.run("a list may be long", func(b *bench) {
		const n = 40_000
		run := newRun("t", "r1")
		for i := range n {
			run.Messages = append(run.Messages, name("m", i))
		}
		asked := append([]string{"other"}, run.Messages...)
		b.start(run)
		got := known(b, "t", asked...)
		b.same("how many", n, len(got))
		b.same("the other", false, got["other"])
	})
	b.run("none asked, none known", func(b *bench) {
		b.same("known", map[string]bool{}, known(b, "t"))
	})
}
