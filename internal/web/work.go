package web

import (
	"mailboxd/internal/client"
	"mailboxd/internal/view"
)

// addWork adds to a decision about the work of a task what the terminal shows of it, and its
// difference.
func (one *decision) addWork(found client.TaskDetails, asked client.Statement) error {
	text, digest := (&view.Details{TaskDetails: found}).WorkContent()
	if found.Task.Revision != asked.Revision || digest != asked.Digest {
		return &client.Error{Kind: client.Conflict, Message: errChanged.Error()}
	}
	one.Content, one.changes = text, changesOf(found, layout{})
	return nil
}
