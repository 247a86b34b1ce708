package ledger

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"

	"mailboxd/internal/decisions/task"
)

func scanSpeaker(r row) (s task.Announcement, err error) {
	var supports []byte
	if err = r.Scan(&s.Name, &supports, stamp{&s.Since}); err == nil {
		err = json.Unmarshal(supports, &s.Supports)
	}
	return s, err
}

// Announce records what an agent can do, in place of its announcement before.
func (tx *Tx) Announce(s task.Announcement) error {
	supports, err := json.Marshal(s.Supports)
	if err == nil {
		_, err = tx.exec(`INSERT INTO speakers (name, supports, since) VALUES (?, ?, ?)
			ON CONFLICT (name) DO UPDATE SET supports = excluded.supports, since = excluded.since`, s.Name, string(supports), s.Since.UnixMicro())
	}
	if err != nil {
		return fmt.Errorf("record what %s can do: %w", s.Name, err)
	}
	return nil
}

// Announced reports whether an agent has announced something.
func (tx *Tx) Announced(name string) (bool, error) {
	_, has, err := first(context.Background(), tx.write, one[int], "SELECT 1 FROM speakers WHERE name = ?", name)
	if err != nil {
		return false, fmt.Errorf("look up whether %s has announced something: %w", name, err)
	}
	return has, nil
}

// Announcements returns the announcements of all agents, by name.
func (tx *Tx) Announcements() ([]task.Announcement, error) {
	speakers, err := all(context.Background(), tx.write, scanSpeaker, "SELECT name, supports, since FROM speakers ORDER BY name")
	if err != nil {
		return nil, fmt.Errorf("list speakers: %w", err)
	}
	return speakers, nil
}
