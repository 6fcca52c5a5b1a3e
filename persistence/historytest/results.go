package historytest

import (
	"strings"

	"github.com/threadcast/threadcast/persistence/thread"
)

func testResults(b *bench) {
	const odd = `["\u0000\ud800",1e400,"</script>",{"a":1,"a":2}]`
	large := `"` + strings.Repeat("z", 9<<20) + `"`
	b.run("a result comes out as it went in", func(b *bench) {
		run := b.start(newRun("t", "r1"))
		for place, content := range []string{odd, large} {
			r := thread.Result{Thread: "t", RunID: "r1", Run: run.Number, Token: run.Token, Place: place + 1, Content: []byte(content)}
			for range 2 {
				b.want(nil, b.SaveResult(b.Context(), r))
			}
			got, err := b.Result(b.Context(), "t", "r1", place+1)
			b.want(nil, err)
			b.same("content", content == string(got.Content), true)
			b.same("run", run.Number, got.Run)
		}
		_, err := b.Result(b.Context(), "t", "r1", 3)
		b.want(thread.ErrNotFound, err)
		_, err = b.Result(b.Context(), "t", "r2", 1)
		b.want(thread.ErrNotFound, err)
		b.delete("t")
		_, err = b.Result(b.Context(), "t", "r1", 1)
		b.want(thread.ErrNotFound, err)
		again := b.start(newRun("t", "r1"))
		b.same("number", run.Number+1, again.Number)
		_, err = b.Result(b.Context(), "t", "r1", 1)
		b.want(thread.ErrNotFound, err)
	})
	b.run("one of a former owner is refused", func(b *bench) {
		former := b.start(newRun("t", "r1"))
		taken := former
		taken.Token++
		b.want(nil, b.TakeRun(b.Context(), taken))
		r := thread.Result{Thread: "t", RunID: "r1", Run: former.Number, Token: former.Token, Place: 1, Content: []byte("1")}
		b.want(thread.ErrLeaseLost, b.SaveResult(b.Context(), r))
		_, err := b.Result(b.Context(), "t", "r1", 1)
		b.want(thread.ErrNotFound, err)
	})
	b.run("bad ones are refused", func(b *bench) {
		run := b.start(newRun("t", "r1"))
		b.want(thread.ErrBadInput, b.SaveResult(b.Context(), thread.Result{Thread: "t", RunID: "r1", Run: run.Number, Token: run.Token, Place: 1, Content: []byte("{")}))
		b.want(thread.ErrNotFound, b.SaveResult(b.Context(), thread.Result{Thread: "t", RunID: "r2", Run: 2, Token: 1, Place: 1, Content: []byte("1")}))
		b.want(thread.ErrNotFound, b.SaveResult(b.Context(), thread.Result{Thread: "t", RunID: "r1", Run: 7, Token: 1, Place: 1, Content: []byte("1")}))
	})
}
