package dispatch

import (
	"crypto/sha256"
	"encoding/hex"

	"mailboxd/envelope"
)

// inboxOf is the file, below the mailbox, to which messages for a participant
// are appended: that of an agent which fetches its tasks, and else
// agents/<name>/inbox.jsonl. A name that no file can have is digested.
func (d *Dispatcher) inboxOf(name string) string {
	if file := d.agents.Inbox(name).File; file != "" {
		return file
	}
	if id, err := envelope.ParseID(name); err != nil || id == "." {
		sum := sha256.Sum256([]byte(name))
		name = "h-" + hex.EncodeToString(sum[:16])
	}
	return "agents/" + name + "/inbox.jsonl"
}
