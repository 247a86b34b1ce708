package dialect

import (
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// perSending are the members of a Clutch message that differ each time that the same command
// is sent.
var perSending = []string{"id", "ts", "attempt", "trace", "idempotency_key", "task_id", "parent_task_id"}

// CommandHash names what a message of Clutch commands: two messages with the same idempotency
// key have to be the same command (CLUTCH-52). It is the hash of the content without the
// members that differ each time that it is sent, and without the signature. It is "" for a
// message of another dialect.
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
