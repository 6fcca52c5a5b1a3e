package history

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/threadcast/threadcast/persistence/thread"
)

// chunk is how many rows or values one statement names; SQLite takes no more than 32,766 values.
const chunk = 500

// maxKey is the longest message id that is kept as it is, in bytes; Postgres takes no index entry over 2,700.
const maxKey = 256

const hashPrefix = "sha256:"

// messageKey is what stands for a message id in the database: the id itself, or its hash if it is long or holds
// what a database would refuse.
func messageKey(id string) string {
	plain := len(id) <= maxKey && utf8.ValidString(id) && strings.IndexByte(id, 0) < 0
	if plain && !strings.HasPrefix(id, hashPrefix) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return hashPrefix + hex.EncodeToString(sum[:])
}

// messageKeys are the keys of ids, each once, in order.
func messageKeys(ids []string) []string {
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = messageKey(id)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// Known tells which of the message ids the thread has already seen, in the input of a run or in its events: the
// result holds those, and no others. A thread that is not there has seen none.
func (h *History) Known(ctx context.Context, id thread.ID, messages []string) (map[string]bool, error) {
	seen := make(map[string]bool)
	for keys := range slices.Chunk(messageKeys(messages), chunk) {
		var found []string
		err := h.read(ctx).Model(&ThreadMessage{}).Where("thread_id = ? AND message_id IN ?", Text(id), keys).
			Pluck("message_id", &found).Error
		if err != nil {
			return nil, fmt.Errorf("look up messages of thread %q: %w", id, meaning(ctx, err))
		}
		for _, key := range found {
			seen[key] = true
		}
	}
	known := make(map[string]bool)
	for _, m := range messages {
		if seen[messageKey(m)] {
			known[m] = true
		}
	}
	return known, nil
}

// noteMessages adds ids to those the thread has seen.
func noteMessages(tx *gorm.DB, id thread.ID, messages []string) error {
	for keys := range slices.Chunk(messageKeys(messages), chunk) {
		rows := make([]ThreadMessage, len(keys))
		for i, key := range keys {
			rows[i] = ThreadMessage{ThreadID: Text(id), MessageID: key}
		}
		if err := tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&rows).Error; err != nil {
			return err
		}
	}
	return nil
}
