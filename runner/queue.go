package runner

// The bounds of one append.
const (
	appendEvents = 256
	appendBytes  = 1 << 20
)

// queue holds events that wait for the log.
type queue struct {
	events [][]byte
	bytes  int
	total  int // bytes of all events that ever were in it
	count  int // how many those are

	blocked bool // the agent waits until there is room
	apart   int  // bytes of results that were kept apart
	results int  // how many those are
}

func (q *queue) push(event []byte) {
	q.events = append(q.events, event)
	q.bytes += len(event)
	q.total += len(event)
	q.count++
}

// take removes as many events as go into one append.
func (q *queue) take() [][]byte {
	n, bytes := fit(len(q.events), func(i int) int { return len(q.events[i]) })
	events := q.events[:n:n]
	q.events = q.events[n:]
	q.bytes -= bytes
	return events
}

// clear removes all events.
func (q *queue) clear() { q.events, q.bytes = nil, 0 }

// fit tells how many of n pieces go into one append, and how many bytes they have: as many as the bounds allow, and
// at least one.
func fit(n int, size func(int) int) (count, bytes int) {
	for count < n && count < appendEvents {
		s := size(count)
		if count > 0 && bytes+s > appendBytes {
			break
		}
		bytes += s
		count++
	}
	return count, bytes
}
