package dispatch

import (
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/core"
	"mailboxd/internal/task"
	"mailboxd/mailbox"
)

// A submission is one envelope on its way from a line into the ledger.
type submission struct {
	line    mailbox.Line
	task    envelope.Task
	odd     envelope.Findings // of reading it
	judged  task.Verdict      // what policy says
	verdict task.Verdict      // that, and what follows from who asks
	said    *envelope.Message // the message that asks; nil for a line of AINL's
	inbound *inboundMessage   // what else a message in a line does; nil for a line of AINL and for what the daemon asks for
	tie     envelope.Tie      // how it belongs to its parent
	above   *task.Task        // its parent, when that is certain; nil: it is found out
	parent  *task.Task        // the task whose run asks; nil: none
	now     time.Time
	refusal []byte // the answer, if the verdict refuses; nil: it does not, or there is nobody to answer
	fate    fate
	row     task.Task     // as the ledger has it, when accepted
	members []*submission // what is asked of each recipient, where there are several
	dir     string        // the run directory that was made for it to begin at once; "" for none
	attempt int           // the highest of a run directory that was there before its revision
	unknown []string      // run directories in which it may have begun, of which the ledger has no run
}

// A fate is what the ledger made of a submission.
type fate int

const (
	unnamed   fate = iota // refused, without an id that a result could go to
	accepted              // a new revision, of whatever state
	duplicate             // the same content as before
	conflict              // the id was executed and its agent refuses other content, or it is no AINL request's
	received              // a message that asks for no work
)

// refuse makes the answer to a submission that the verdict does not admit.
func (c *submission) refuse() { c.refusal = core.Refusal(c.task, c.verdict, false, c.now) }

// warn adds to what is said about a submission.
func (c *submission) warn(field, message string) {
	findings := c.verdict.Findings
	c.verdict.Findings = append(findings[:len(findings):len(findings)], envelope.Finding{Field: field, Message: message})
}

// contradiction is the story of an id that comes with other content than before.
func contradiction(c *submission, last task.Task) task.Event {
	return event(last, task.KindTaskDuplicateConflict, map[string]any{
		"kind": envelope.DuplicateConflict, "hash": c.task.Hash, "raw": string(c.task.Raw),
		"file": c.line.File, "offset": c.line.Offset,
	})
}

// lineRejected is the story of a line that names no task.
func lineRejected(c *submission) task.Event {
	return event(task.Task{}, task.KindLineRejected, map[string]any{
		"file": c.line.File, "offset": c.line.Offset, "length": c.line.Length,
		"sha256": c.task.Hash, "reasons": c.verdict.Findings.Refusals().Words(),
	})
}

// unknownSender is the event of a message of somebody whom nobody here knows.
func unknownSender(c *submission) task.Event {
	m := c.inbound.message
	data := map[string]any{"from": m.From}
	if m.ID != "" {
		data["message_id"] = m.ID
	}
	if c.line.File != "" {
		data["file"], data["offset"] = c.line.File, c.line.Offset
	}
	return event(c.row, task.KindMessageUnknownSender, data)
}

func deadLetter(c *submission) mailbox.DeadLetter {
	letter := mailbox.DeadLetter{
		Time:   c.now,
		File:   c.line.File,
		Offset: c.line.Offset,
		Length: c.line.Length,
		SHA256: c.line.SHA256,
		TaskID: string(c.task.ID),
		Kind:   c.verdict.Findings.Kind(),
		Raw:    c.task.Raw,
	}
	for _, f := range c.verdict.Findings.Refusals() {
		letter.Reasons = append(letter.Reasons, mailbox.Reason{Field: f.Field, Message: f.Message})
	}
	return letter
}

// An inboundMessage is a message of CLowl or CAP on its way from a line into the ledger,
// and its effect. A transaction that runs again finds out all of it anew.
type inboundMessage struct {
	message  envelope.Message
	degraded bool        // its context is not there, so its inline context is used
	answer   *lineAnswer // the answer that it is to a task which waits for its sender; nil: none
	unread   error       // why that cannot be found out now; nil: it was
}

// A lineAnswer is the answer, in a line, of an agent that fetches its tasks.
type lineAnswer struct {
	row  task.Task
	run  task.Run
	turn *turn // what comes of it
	err  error // why it is none
}

// fieldsOf names the fields of a dialect in findings.
var fieldsOf = map[envelope.Dialect]struct{ from, to, about string }{
	envelope.CLowl: {"from", "to", "pid"},
	envelope.CAP:   {"sender_id", "recipient_id", "task_id"},
}
