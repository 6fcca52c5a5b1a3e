package history

import (
	"context"
	"encoding/hex"
	"fmt"

	"github.com/threadcast/threadcast/persistence/thread"
)

// Installation returns what tells this database from all others, as long as it exists.
func (h directory) Installation(ctx context.Context) (string, error) {
	row, err := h.installation(ctx)
	return string(row.ID), err
}

// Secret returns bytes that nobody knows who cannot read this database: the same for all who use it, as long as it
// exists. What is signed with them by one node is known by all, also after they were started again.
func (h directory) Secret(ctx context.Context) ([]byte, error) {
	row, err := h.installation(ctx)
	if err != nil {
		return nil, err
	}
	secret, err := hex.DecodeString(row.Secret)
	if err != nil || len(secret) < 32 {
		return nil, fmt.Errorf("look up the secret of the installation: %w", thread.ErrCorrupt)
	}
	return secret, nil
}

func (h directory) installation(ctx context.Context) (Installation, error) {
	var row Installation
	if err := h.read(ctx).Take(&row).Error; err != nil {
		return row, fmt.Errorf("look up the installation: %w", meaning(ctx, found(err)))
	}
	return row, nil
}
