// Package proof signs the decisions of approvers, and verifies the signatures. A signature is
// valid for one decision about one content of one revision in one mailbox, and no other.
package proof

import (
	"bytes"
	"fmt"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// Namespace is the namespace of the signatures. It keeps a signature that was made for another
// purpose, such as a git commit, from counting as an approval.
const Namespace = "approval@mailboxd"

// A Statement is the decision that an approver signs.
type Statement struct {
	Mailbox  string            // id of the mailbox
	Task     envelope.ID       // id of the task
	Revision int               // of the task, from 1
	Stage    envelope.Approval // ApprovalPre or ApprovalPost
	Decision task.Decision     // Approved or Denied
	Digest   string            // of the content that the decision is about
	Asked    time.Time         // when the approver was asked: each question needs a signature of its own
	Expires  time.Time         // when the signature ends to be valid; to the second
}

// Encode returns the signed text: one line for each field, the same bytes for the same
// statement. No field can hold a line break: an id is a safe file name, and the other texts are
// quoted when they aren't plain.
func (s Statement) Encode() []byte {
	var b bytes.Buffer
	b.WriteString("mailboxd approval 1\n")
	for _, f := range [][2]string{
		{"mailbox", s.Mailbox}, {"task", string(s.Task)}, {"revision", fmt.Sprint(s.Revision)}, {"stage", string(s.Stage)},
		{"decision", string(s.Decision)}, {"digest", s.Digest}, {"asked", s.Asked.UTC().Format(time.RFC3339Nano)}, {"expires", s.Expires.UTC().Format(time.RFC3339)},
	} {
		fmt.Fprintf(&b, "%s: %s\n", f[0], plain(f[1]))
	}
	return b.Bytes()
}

// plain quotes a text that isn't printable ASCII.
func plain(text string) string {
	for _, r := range text {
		if r < ' ' || r > '~' || r == '"' {
			return fmt.Sprintf("%q", text)
		}
	}
	return text
}
