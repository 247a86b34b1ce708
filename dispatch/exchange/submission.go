package exchange

import (
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/core"
	"mailboxd/internal/task"
	"mailboxd/mailbox"
)

// A Submission is one envelope on its way from a line into the ledger.
type Submission struct {
	Line           mailbox.Line
	Task           envelope.Task
	DecodeFindings envelope.Findings // of reading it
	Judged         task.Verdict      // what policy says
	Verdict        task.Verdict      // that, and what follows from who asks
	Message        *envelope.Message // the message that asks; nil for a line of AINL's
	Inbound        *InboundMessage   // what else a message in a line does; nil for a line of AINL and for what the daemon asks for
	Now            time.Time
	lineage
	acceptance
	priorRuns
}

// A lineage is how a submission belongs to another task.
type lineage struct {
	tie    envelope.Tie
	above  *task.Task // its parent, when that is certain; nil: it is found out
	parent *task.Task // the task whose run asks; nil: none
}

// An acceptance is what the ledger made of a submission.
type acceptance struct {
	Disposition Disposition
	Row         task.Task     // as the ledger has it, when accepted
	Members     []*Submission // what is asked of each recipient, where there are several
	refusal     []byte        // the answer, if the verdict refuses; nil: it does not, or there is nobody to answer
}

// The traces of a submission are what lies in the state directory from before it.
type priorRuns struct {
	Dir     string   // the run directory that was made for it to begin at once; "" for none
	Unknown []string // run directories in which it may have begun, of which the ledger has no run
	attempt int      // the highest of a run directory that was there before its revision
}

// A Disposition is what the ledger made of a submission.
type Disposition int

// The dispositions.
const (
	Unnamed   Disposition = iota // refused, without an id that a result could go to
	Accepted                     // a new revision, of whatever state
	Duplicate                    // the same content as before
	Conflict                     // the id was executed and its agent refuses other content, or it is no AINL request's
	Received                     // a message that asks for no work
)

// Refuse makes the answer to a submission that the verdict does not admit.
func (c *Submission) Refuse() { c.refusal = core.Refusal(c.Task, c.Verdict, false, c.Now) }

// warn adds to what is said about a submission.
func (c *Submission) warn(field, message string) {
	findings := c.Verdict.Findings
	c.Verdict.Findings = append(findings[:len(findings):len(findings)], envelope.Finding{Field: field, Message: message})
}

// conflictEvent is the event of an id that comes with other content than before.
func conflictEvent(c *Submission, last task.Task) task.Event {
	return store.Event(last, task.KindTaskDuplicateConflict, map[string]any{
		"kind": envelope.DuplicateConflict, "hash": c.Task.Hash, "raw": string(c.Task.Raw),
		"file": c.Line.File, "offset": c.Line.Offset,
	})
}

// lineRejected is the event of a line that names no task.
func lineRejected(c *Submission) task.Event {
	return store.Event(task.Task{}, task.KindLineRejected, map[string]any{
		"file": c.Line.File, "offset": c.Line.Offset, "length": c.Line.Length,
		"sha256": c.Task.Hash, "reasons": c.Verdict.Findings.Refusals().Words(),
	})
}

// unknownSender is the event of a message of somebody whom nobody here knows.
func unknownSender(c *Submission) task.Event {
	m := c.Inbound.Message
	data := map[string]any{"from": m.From}
	if m.ID != "" {
		data["message_id"] = m.ID
	}
	if c.Line.File != "" {
		data["file"], data["offset"] = c.Line.File, c.Line.Offset
	}
	return store.Event(c.Row, task.KindMessageUnknownSender, data)
}

// DeadLetter is a submission that is no valid envelope, as it is kept in rejected/.
func DeadLetter(c *Submission) mailbox.DeadLetter {
	letter := mailbox.DeadLetter{
		Time:   c.Now,
		File:   c.Line.File,
		Offset: c.Line.Offset,
		Length: c.Line.Length,
		SHA256: c.Line.SHA256,
		TaskID: string(c.Task.ID),
		Kind:   c.Verdict.Findings.Kind(),
		Raw:    c.Task.Raw,
	}
	for _, f := range c.Verdict.Findings.Refusals() {
		letter.Reasons = append(letter.Reasons, mailbox.Reason{Field: f.Field, Message: f.Message})
	}
	return letter
}

// An InboundMessage is a message of CLowl or CAP on its way from a line into the ledger,
// and its effect. A transaction that runs again finds out all of it anew.
type InboundMessage struct {
	Message  envelope.Message
	degraded bool           // its context is not there, so its inline context is used
	answer   *inboundAnswer // the answer that it is to a task which waits for its sender; nil: none
	unread   error          // why that cannot be found out now; nil: it was
}

// A inboundAnswer is the answer, in a line, of an agent that fetches its tasks.
type inboundAnswer struct {
	row        task.Task
	run        task.Run
	completion *completion // what comes of it
	err        error       // why it is none
}

// fieldsOf names the fields of a dialect in findings.
var fieldsOf = map[envelope.Dialect]struct{ from, to, about string }{
	envelope.CLowl: {"from", "to", "pid"},
	envelope.CAP:   {"sender_id", "recipient_id", "task_id"},
}
