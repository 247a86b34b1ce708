package dispatch

import "mailboxd/envelope/dialect"

// inboxOf is the inbox of a participant, below the root.
func (d *Dispatcher) inboxOf(name string) string {
	if file := d.agents.Inbox(name).File; file != "" {
		return file
	}
	return "agents/" + string(dialect.TaskID(name)) + "/inbox.jsonl"
}

func (d *Dispatcher) nudge(int64) {}
