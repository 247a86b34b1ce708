package index

import (
	"fmt"
	"strings"

	"mailboxd/internal/journal"
)

// A Place says where in the journal a body is. The zero value is nowhere.
type Place struct {
	journal.Place
	Body string // its name in the event
}

// String returns the place as the index keeps it.
func (p Place) String() string {
	return fmt.Sprintf("%d:%d:%d:%d:%s", p.N, p.Segment, p.Offset, p.Length, p.Body)
}

// scanPlace scans a column that has a place.
type scanPlace struct{ into *Place }

// Scan implements sql.Scanner.
func (s scanPlace) Scan(column any) error {
	*s.into = Place{}
	spelled, ok := column.(string)
	if !ok || spelled == "" {
		return nil
	}
	at := strings.LastIndexByte(spelled, ':')
	s.into.Body = spelled[at+1:]
	if _, err := fmt.Sscanf(spelled[:max(at, 0)], "%d:%d:%d:%d", &s.into.N, &s.into.Segment, &s.into.Offset, &s.into.Length); err != nil {
		return fmt.Errorf("read place %q: %w", spelled, err)
	}
	return nil
}
