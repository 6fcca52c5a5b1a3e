package loadtest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"hash/maphash"

	"github.com/threadcast/threadcast/cmd/threadcast/client"
	"github.com/threadcast/threadcast/persistence/thread"
)

// seed makes the sums of one process comparable.
var seed = maphash.MakeSeed()

// passage is what somebody has of one run, from its beginning. Events are not kept: a sum stands for their bytes.
type passage struct {
	number uint64
	events int // without those after the terminal event
	sum    maphash.Hash
	end    terminal
	ended  bool          // the terminal event has come
	at     thread.Cursor // the position after all that was taken
	amiss  int           // positions for which no event came, less events for which there is no position
	parted bool          // not event by event: it was compacted, or something is wrong with it
}

// terminal is what is read of the event that ends a run.
type terminal struct {
	Type    string `json:"type"`
	Code    string `json:"code"`
	Outcome struct {
		Type string `json:"type"`
	} `json:"outcome"`
}

func newPassage(number uint64) *passage {
	p := &passage{number: number, at: thread.Cursor{Run: number}}
	p.sum.SetSeed(seed)
	return p
}

// misfit is how the events of a batch differ from what its positions say.
type misfit struct{ lost, repeated, late int }

// take adds the batch of a step to what is there, and says what does not fit.
func (p *passage) take(s client.Step) (m misfit) {
	for _, e := range s.Events {
		if p.ended {
			m.late++
			continue
		}
		p.events++
		p.add(e)
		p.end, p.ended = isTerminal(e)
	}
	p.at = s.To
	p.amiss += m.late
	apart := p.apart()
	switch {
	case apart < 0:
		m.repeated = -apart
	case apart > 1 || apart == 1 && !p.ended:
		if p.ended {
			apart--
		}
		if !s.Replay {
			m.lost = apart
		}
		p.parted = true
	default:
		apart = 0
	}
	p.amiss += apart
	p.parted = p.parted || m != (misfit{})
	return m
}

// skip notes that what lies before the beginning of the next batch did not come.
func (p *passage) skip(to thread.Cursor) {
	p.amiss += int(to.Seq) - int(p.at.Seq)
	p.at, p.parted = to, true
}

// apart is how many positions there are for which no event came: 1 when the end of the run is among them.
func (p *passage) apart() int { return int(p.at.Seq) - p.events - p.amiss }

func (p *passage) add(event []byte) {
	var size [8]byte
	binary.LittleEndian.PutUint64(size[:], uint64(len(event)))
	_, _ = p.sum.Write(size[:]) // it never fails
	_, _ = p.sum.Write(event)
}

// done tells whether the end of the run has come, and not only the event that says so.
func (p *passage) done() bool { return p.ended && (p.parted || p.apart() == 1) }

// same tells whether q has the same events.
func (p *passage) same(q *passage) bool {
	return p.events == q.events && p.sum.Sum64() == q.sum.Sum64()
}

// isTerminal tells whether an event ends its run.
func isTerminal(event []byte) (terminal, bool) {
	var t terminal
	if !bytes.Contains(event, []byte("RUN_FINISHED")) && !bytes.Contains(event, []byte("RUN_ERROR")) {
		return t, false
	}
	ok := json.Unmarshal(event, &t) == nil && (t.Type == "RUN_FINISHED" || t.Type == "RUN_ERROR")
	return t, ok
}
