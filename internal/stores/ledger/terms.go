package ledger

import (
	"encoding/json"
	"fmt"

	"mailboxd/internal/decisions/task"
)

func encodeTerms(t task.Terms) (string, error) {
	text, err := json.Marshal(t)
	return string(text), err
}

func decodeTerms(text string) (t task.Terms, err error) {
	if text == "" {
		return task.Terms{}, nil // an older version's run
	}
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return task.Terms{}, fmt.Errorf("read terms: %w", err)
	}
	return t, nil
}
