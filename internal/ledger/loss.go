package ledger

import (
	"context"
	"fmt"
	"time"
)

// Lost reports whether an earlier ledger could not be read and the lines of
// its time have not all been met again: see MetAgain.
func (r *Reader) Lost(ctx context.Context) (bool, error) {
	lost, _, err := first(ctx, r.read, one[bool], "SELECT count(*) > 0 FROM losses WHERE over IS NULL")
	if err != nil {
		return false, fmt.Errorf("look for lost ledgers: %w", err)
	}
	return lost, nil
}

// MetAgain remembers that every line was met that an earlier, lost ledger may
// have known.
func (tx *Tx) MetAgain() error {
	if _, err := tx.exec("UPDATE losses SET over = ? WHERE over IS NULL", time.Now().UnixMicro()); err != nil {
		return fmt.Errorf("remember that lines were met again: %w", err)
	}
	return nil
}
