package redislog

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/threadcast/threadcast/persistence/thread"
)

// Groups is into how many groups the threads are parted. All nodes have to agree on it, and so have all versions of the
// program.
const Groups = 16

// DefaultPrefix is what the names of all keys begin with unless [Options] say otherwise.
const DefaultPrefix = "threadcast:"

// keys builds the names of keys. What a name ends with is a thread's id as it is: it follows the hash tag, so that
// braces in it mean nothing.
type keys struct{ prefix string }

// checkPrefix refuses a prefix that would change which part of a name is the hash tag.
func checkPrefix(prefix string) error {
	if strings.ContainsAny(prefix, "{}") {
		return fmt.Errorf("%w: the prefix of the keys in Redis must not hold braces, got %q", thread.ErrBadInput, prefix)
	}
	return nil
}

// groupOf is the group that a thread belongs to.
func groupOf(id thread.ID) int {
	h := fnv.New32a()
	h.Write([]byte(id))
	return int(h.Sum32() % Groups)
}

func (k keys) name(kind string, group int) string {
	return k.prefix + kind + ":{" + strconv.Itoa(group) + "}"
}

// counters is the hash of a group's counters; it stays for ever.
func (k keys) counters(group int) string { return k.name("counters", group) }

// news is the stream of what happens to the threads of a group.
func (k keys) news(group int) string { return k.name("news", group) }

// leases is the sorted set of the threads of a group that are leased, by deadline.
func (k keys) leases(group int) string { return k.name("leases", group) }

// probe is the stream that the lane of one node reads for its probes.
func (k keys) probe(group int, node string) string { return k.name("probe", group) + node }

// locks is what the names of the locks of a group begin with.
func (k keys) locks(group int) string { return k.name("lock", group) }

// ticket is the note that a ticket has been used.
func (k keys) ticket(nonce string) string { return k.prefix + "ticket:" + nonce }

// lock is the record of a thread's lease, a hash.
func (k keys) lock(id thread.ID) string { return k.locks(groupOf(id)) + string(id) }

// active is the sorted set of the runs of a thread that are in the log, "<run>:<run id>" by run.
func (k keys) active(id thread.ID) string { return k.name("active", groupOf(id)) + string(id) }

// streams is what the names of a thread's streams begin with; the run's number follows.
func (k keys) streams(id thread.ID) string {
	return k.name("stream", groupOf(id)) + string(id) + ":"
}

// stream is the stream of a run's entries.
func (k keys) stream(id thread.ID, run uint64) string {
	return k.streams(id) + strconv.FormatUint(run, 10)
}
