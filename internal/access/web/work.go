package web

import (
	"fmt"

	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/view"
)

// addWork adds to a decision about the work of a task what the terminal shows of it, and its
// difference.
func (one *decision) addWork(found client.TaskDetails, asked client.Statement) error {
	text, digest := (&view.Details{TaskDetails: found}).WorkContent()
	if found.Task.Revision != asked.Revision || digest != asked.Digest {
		return &client.Error{Kind: client.Conflict, Message: errChanged.Error()}
	}
	one.Content, one.changes = text, changesOf(found, layout{})
	return one.checkShown()
}

// checkShown refuses to approve or apply a difference that can't be shown.
func (one *decision) checkShown() error {
	if one.changes == nil || one.changes.unread == nil || one.Verb == "deny" || one.Verb == "discard" {
		return nil
	}
	return &client.Error{Kind: client.Conflict, Message: fmt.Sprintf("the difference can't be shown, so nobody can %s it here: %v", one.Verb, one.changes.unread)}
}
