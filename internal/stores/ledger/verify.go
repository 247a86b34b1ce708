package ledger

import (
	"context"
	"fmt"
	"strings"
)

// Verify reads every page of the ledger and reports, as an error, the first
// fault. It reads one moment, beside a writer too,
// and takes a second for every few hundred megabytes.
func (r *Reader) Verify(ctx context.Context) error {
	verdict, _, err := first(ctx, r.read, one[string], "PRAGMA quick_check(1)")
	if err == nil && verdict != "ok" {
		err = fmt.Errorf("%w: %s", errUnreadable, strings.ReplaceAll(verdict, "\n", " "))
	}
	if err != nil {
		return fmt.Errorf("verify ledger: %w", err)
	}
	return nil
}
