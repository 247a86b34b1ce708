package index

import (
	"database/sql/driver"
	"fmt"
	"time"
)

// A value is the content of one column. Its zero value is NULL. driver.Values would take an
// allocation for each.
type value struct {
	kind   kind
	number int64
	text   string // of a blob too
}

// A kind is the type of a column.
type kind byte

const (
	null kind = iota
	number
	text
	blob
)

func integer[T ~int | ~int64](n T) value { return value{kind: number, number: int64(n)} }

func word[T ~string](s T) value { return value{kind: text, text: string(s)} }

func truth(is bool) value {
	if is {
		return value{kind: number, number: 1}
	}
	return value{kind: number}
}

// bytesOf is NULL for nil.
func bytesOf(b []byte) value {
	if b == nil {
		return value{}
	}
	return value{kind: blob, text: string(b)}
}

// moment is in microseconds, which reach past any year that a deadline can name. It is NULL
// for the zero time.
func moment(t time.Time) value {
	if t.IsZero() {
		return value{}
	}
	return value{kind: number, number: t.UnixMicro()}
}

// amount is NULL for nil.
func amount(n *int64) value {
	if n == nil {
		return value{}
	}
	return value{kind: number, number: *n}
}

// place is NULL for the zero Place, which leaves the column as it is.
func place(p Place) value {
	if p == (Place{}) {
		return value{}
	}
	return word(p.String())
}

// boxed is the value as the driver takes it.
func (v value) boxed() driver.Value {
	switch v.kind {
	case number:
		return v.number
	case text:
		return v.text
	case blob:
		return []byte(v.text)
	}
	return nil
}

// A stamp scans a column of microseconds, or NULL, into the time that it points at.
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

// Exact is a time as the index keeps it.
func Exact(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return time.UnixMicro(t.UnixMicro()).UTC()
}
