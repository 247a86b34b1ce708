package exchange

import (
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/mailbox"
)

// A Submission is one envelope on its way from a line into the ledger.
type Submission struct {
	Line           mailbox.Line
	Task           envelope.Task
	DecodeFindings envelope.Findings // the findings of decoding it
	Judged         task.Verdict      // the verdict of policy
	Verdict        task.Verdict      // Judged, with the limits of the requester and the parent
	Message        *envelope.Message // the message of the request; nil for an AINL line
	Inbound        *InboundMessage   // the effects of a message in a line; nil for an AINL line and a request of the daemon
	Now            time.Time
	SignatureFault string // why its signature is refused; "" if it isn't
	lineage
	acceptance
	priorRuns
}

// A lineage connects a submission to other tasks.
type lineage struct {
	tie         envelope.Tie
	knownParent *task.Task // the parent, when it is certain; nil: to be found
	parent      *task.Task // the task whose run requests; nil: none
	inRunFile   bool       // the line is in the task file of a run
	author      *task.Task // the task of that run; nil: unknown to the ledger
}

// An acceptance is what the ledger made of a submission.
type acceptance struct {
	Disposition Disposition
	Row         task.Task     // the row in the ledger, when accepted
	Members     []*Submission // the request of each agent, when there are several
	refusal     []byte        // the result, if the verdict refuses; nil: it admits, or there is no requester to answer
}

// priorRuns describes run directories that existed before the submission.
type priorRuns struct {
	Dir     string   // the run directory of a fast start; "" for none
	Unknown []string // directories without a run in the ledger, in which a run may have begun
	attempt int      // the highest attempt of such a directory for its revision
}

// A Disposition is what the ledger made of a submission.
type Disposition int

// The dispositions of a submission.
const (
	Unnamed   Disposition = iota // refused, without an id for a result
	Accepted                     // a new revision, in any state
	Duplicate                    // the same content as before
	Conflict                     // the id was executed and its agent refuses other content, or the id belongs to another dialect
	Received                     // a message that requests no work
)

// Refuse makes the result of a submission that the verdict refuses.
func (c *Submission) Refuse() { c.refusal = core.Refusal(c.Task, c.Verdict, false, c.Now) }

// warn adds a warning to the findings of a submission.
func (c *Submission) warn(field, message string) {
	findings := c.Verdict.Findings
	c.Verdict.Findings = append(findings[:len(findings):len(findings)], envelope.Finding{Field: field, Message: message})
}

// conflictEvent returns the event of an id that arrives with other content.
func conflictEvent(c *Submission, last task.Task) task.Event {
	return store.Event(last, task.KindTaskDuplicateConflict, map[string]any{
		"kind": envelope.DuplicateConflict, "hash": c.Task.Hash, "raw": string(c.Task.Raw),
		"file": c.Line.File, "offset": c.Line.Offset,
	})
}

// lineRejected returns the event of a line that names no task.
func lineRejected(c *Submission) task.Event {
	return store.Event(task.Task{}, task.KindLineRejected, map[string]any{
		"file": c.Line.File, "offset": c.Line.Offset, "length": c.Line.Length,
		"sha256": c.Task.Hash, "reasons": c.Verdict.Findings.Refusals().Words(),
	})
}

// unknownSender returns the event of a message from an unknown sender.
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

// DeadLetter returns the entry in rejected/ of a submission that is no valid envelope.
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

// An InboundMessage is a message of CLowl or CAP on its way from a line into the ledger, with
// its effect. A transaction that runs again determines the effect again.
type InboundMessage struct {
	Message  envelope.Message
	degraded bool           // its context is missing, so the inline context is used
	answer   *inboundAnswer // the message as the answer to a waiting task; nil: it is none
	unread   error          // why that can't be determined now; nil: it was
}

// An inboundAnswer is the answer, in a line, of an agent that fetches its tasks.
type inboundAnswer struct {
	row        task.Task
	run        task.Run
	completion *completion // of the answered run
	err        error       // why the answer is invalid
}

// fieldsOf names the fields of a dialect in findings.
var fieldsOf = map[envelope.Dialect]struct{ from, to, about string }{
	envelope.CLowl: {"from", "to", "pid"},
	envelope.CAP:   {"sender_id", "recipient_id", "task_id"},

	envelope.Clutch: {"from.agent_id", "to", "task_id"},
}
