package history

import (
	"context"
	"fmt"
)

// Installation returns what tells this database from all others, as long as it exists.
func (h *History) Installation(ctx context.Context) (string, error) {
	var row Installation
	if err := h.read(ctx).Take(&row).Error; err != nil {
		return "", fmt.Errorf("look up the installation: %w", meaning(ctx, found(err)))
	}
	return string(row.ID), nil
}
