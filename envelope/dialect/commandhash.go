package dialect

import (
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// perSending are the members of a Clutch message that differ when the same command is sent
// again.
var perSending = []string{"id", "ts", "attempt", "trace", "idempotency_key", "task_id", "parent_task_id"}

// CommandHash names the command of a Clutch message: two messages with the same idempotency key
// must be the same command (CLUTCH-52). It hashes the content without the members that differ
// when the command is sent again, and without the signature. It is "" for a message of another
// dialect.
func CommandHash(m envelope.Message) string {
	members := membersOf(m.Raw)
	if m.Dialect != envelope.Clutch || members == nil {
		return ""
	}
	for _, name := range perSending {
		delete(members, name)
	}
	if security := membersOf(members["security"]); security["auth"] != nil {
		delete(security, "auth")
		if members["security"] = object(security); len(security) == 0 {
			delete(members, "security")
		}
	}
	hash, findings := envelope.ContentHash(jsontext.Value(object(members)))
	if findings.Refused() {
		return ""
	}
	return hash
}
