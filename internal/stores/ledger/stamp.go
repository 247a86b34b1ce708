package ledger

import (
	"fmt"
	"time"
)

// A stamp reads a time column into the time it points at: microseconds since
// 1970, which reach past any year a deadline can name, or NULL for the zero
// time.
type stamp struct{ into *time.Time }

// Scan implements sql.Scanner.
func (s stamp) Scan(column any) error {
	switch v := column.(type) {
	case nil:
		*s.into = time.Time{}
	case int64:
		*s.into = time.UnixMicro(v).UTC()
	default:
		return fmt.Errorf("read time: is a %T, not a number", column)
	}
	return nil
}

// micros is the column's value for t.
func micros(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}
