package exchange

import (
	"cmp"
	"fmt"
	"slices"

	"mailboxd/dispatch/outbox"
	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// An Acceptor adds tasks, as their verdict and their lineage require.
type Acceptor struct {
	*outbox.Base
	Lost bool // the ledger was lost, and not all lines from before the loss are read again
}

// Accept decides what a submission is to the ledger, and records it. Its transaction may run
// again, so it sets all fields that it changes.
//
// The id names the task, the content names the revision (AINL-55). The content of the latest
// revision is a duplicate. The content of an older revision is a new request in an appended
// line, and a duplicate in a line that is read again.
func (ac *Acceptor) Accept(tx *store.Transaction, known *KnownIDs, c *Submission) error {
	ac.Runs.ForgetRefusal(c.Row.Seq)
	c.Disposition, c.Row, c.parent, c.Verdict = Unnamed, task.Task{}, c.knownParent, c.Judged
	if c.SignatureFault != "" {
		return ac.refuseSignature(tx, known, c)
	}
	if c.Task.ID == "" {
		return tx.Log(lineRejected(c))
	}
	last, found, err := known.latest(tx, c.Task.ID)
	if err != nil {
		return err
	}
	if found && c.isFragment() && !last.Kind.IsLineError() {
		return tx.Log(lineRejected(c)) // the content of the line is unknown
	}
	if found {
		same, err := ac.isDuplicate(tx, c, last)
		if err != nil {
			return err
		}
		if same {
			c.Disposition = Duplicate
			if c.Line.Replayed {
				return nil // a file of a million lines that is read again must not add a million events
			}
			return tx.Log(store.Event(last, task.KindTaskDuplicate, map[string]any{"file": c.Line.File, "offset": c.Line.Offset}))
		}
		if other, err := isOthers(tx, c, last); err != nil || other {
			c.Disposition = Conflict
			return cmp.Or(err, tx.Log(conflictEvent(c, last)))
		}
		executed, err := tx.Executed(c.Task.ID)
		if err != nil {
			return err
		}
		if executed && !ac.Agents.Reruns(last.Agent) || last.Dialect != c.dialect() { // only AINL has revisions
			c.Disposition = Conflict
			return tx.Log(conflictEvent(c, last))
		}
	}
	c.Disposition = Accepted
	known.changed[c.Task.ID] = true
	return ac.revise(tx, c, last, found)
}

// KnownIDs holds the latest revisions of the ids of a batch, read in one query: single queries
// took a third of a batch's time.
type KnownIDs struct {
	rows    map[envelope.ID]task.Task
	changed map[envelope.ID]bool // by the batch itself: the ledger is asked again
	Stale   bool                 // a message was received, which may have changed any
}

// LookUpIDs reads the latest revisions of the ids of a batch.
func LookUpIDs(tx *store.Transaction, submissions []*Submission) (*KnownIDs, error) {
	ids := make([]envelope.ID, 0, len(submissions))
	for _, c := range submissions {
		if c.Task.ID != "" {
			ids = append(ids, c.Task.ID)
		}
	}
	rows, err := tx.Latests(ids)
	return &KnownIDs{rows: rows, changed: map[envelope.ID]bool{}}, err
}

func (k *KnownIDs) latest(tx *store.Transaction, id envelope.ID) (task.Task, bool, error) {
	if k.Stale || k.changed[id] {
		return tx.Latest(id)
	}
	row, found := k.rows[id]
	return row, found, nil
}

// isFragment reports whether only an id could be read from the submission's line: the line is
// no JSON, too long, or refused because it holds several envelopes. A fragment refuses a new
// id, and never replaces a complete request.
func (c *Submission) isFragment() bool {
	kind := c.Verdict.Findings.Kind()
	return c.Line.TooLong || kind == envelope.InvalidJSON || kind.IsLineError() && slices.Contains(c.Verdict.Findings, envelope.SharedLine)
}

// isDuplicate reports whether a submission has the content of a known revision.
func (ac *Acceptor) isDuplicate(tx *store.Transaction, c *Submission, last task.Task) (bool, error) {
	if last.Hash == c.Task.Hash {
		return true, nil
	}
	if !c.Line.Replayed {
		return false, nil
	}
	_, known, err := tx.Known(c.Task.ID, c.Task.Hash)
	return known, err
}

// revise adds the next revision. It replaces a revision that has not started; behind a revision
// in progress it waits as received.
func (ac *Acceptor) revise(tx *store.Transaction, c *Submission, last task.Task, found bool) error {
	if err := ac.findParent(tx, c); err != nil {
		return err
	}
	if !found || last.State == task.Done {
		if err := ac.limitRequester(tx, c); err != nil {
			return err
		}
	}
	if err := ac.reconcile(c, last.Revision+1); err != nil {
		return err
	}
	state, err := core.NewState(), error(nil)
	if found {
		ac.Runs.MarkSuccessor(last.Seq)
		if state, err = store.LoadRevisions(tx, c.Task.ID); err != nil {
			return err
		}
	}
	return ac.add(tx, c, state)
}

// add adds a submission to the revisions of its id.
func (ac *Acceptor) add(tx *store.Transaction, c *Submission, state *core.State) error {
	if _, err := ac.Writer.DecideIn(tx, state, c.command(ac.Agents.Protocol.Rule), c.Now); err != nil {
		return err
	}
	c.Row = state.Latest(c.Task.ID).Task
	if !c.Verdict.Admit && c.Row.State == task.Done && c.Inbound == nil {
		ac.Runs.Refuse(c.Row, c.refusal, c.Task.Callback)
	}
	return startConversation(tx, c)
}

// command returns the command of a submission for the core.
func (c *Submission) command(rule func(from, to string) string) *core.Accept {
	accept := &core.Accept{
		Request: c.Task, Dialect: c.dialect(), Verdict: c.Verdict, File: c.Line.File, Offset: c.Line.Offset, Received: c.Now,
		Attempt: c.attempt, Unknown: c.Unknown, Parent: c.parent, Result: c.refusal,
	}
	if c.parent != nil {
		accept.Rule = rule(c.parent.Agent, c.Task.Agent)
	}
	return accept
}

// limitRequester refuses a submission of a requester that has the maximum of open tasks
// (CLOWL-36). A request for several agents counts once.
func (ac *Acceptor) limitRequester(tx *store.Transaction, c *Submission) error {
	limit := ac.Opts.QueuePerRequester
	if limit <= 0 || !c.Verdict.Admit || c.tie == envelope.Member || c.tie == envelope.Oversee {
		return nil
	}
	open, err := tx.OpenOf(c.Task.Requester)
	if err != nil || open < limit {
		return err
	}
	ac.refuse(c, envelope.Finding{Kind: envelope.Capacity, Message: fmt.Sprintf("%q has %d unfinished tasks, the limit of limits.queue_per_requester", c.Task.Requester, open)})
	return nil
}

// dialect returns the dialect of a submission.
func (c *Submission) dialect() envelope.Dialect {
	if c.Message == nil || c.Message.Dialect == "" {
		return envelope.AINL
	}
	return c.Message.Dialect
}

// startConversation records the conversation of an accepted submission. An AINL request without
// a parent has none.
func startConversation(tx *store.Transaction, c *Submission) error {
	if c.Message == nil || c.Message.Dialect == "" && c.tie == "" {
		return nil
	}
	if c.Row.Parent == 0 {
		if err := tx.SetRun(c.Row.ID, conversation.RunOf(*c.Message)); err != nil {
			return err
		}
	}
	return tx.StartConversation(task.Conversation{
		Task: c.Row.Seq, Message: c.Message.ID, Thread: c.Message.Thread, Trace: c.Message.Trace, Tie: c.tie,
		Open: conversation.Notified(c.tie),
	})
}

// raiseSensitivity judges a submission again when its ancestors are more sensitive. It works
// inside a transaction.
func (ac *Acceptor) raiseSensitivity(tx *store.Transaction, c *Submission) error {
	if !c.Verdict.Admit || c.parent == nil || c.Task.Agent == envelope.Mailboxd {
		return nil
	}
	highest, err := ac.Reader.SensitivityOf(c.parent.Seq, func(seq int64) (row task.Task, raw []byte, err error) {
		row, known, err := tx.Task(seq)
		if err == nil && !known {
			err = ledger.ErrUnknown
		}
		if err == nil {
			raw, err = tx.Raw(seq)
		}
		return row, raw, err
	})
	if err != nil || highest <= c.Task.Sensitivity {
		return err
	}
	t, before := c.Task, c.Verdict
	t.Sensitivity = highest
	v := ac.Reader.Judge(t, before.Findings.Warnings(), c.Now)
	v.Findings = v.Findings.Distinct()
	if !v.Admit {
		c.Verdict = v
		c.Refuse()
		return nil
	}
	c.Verdict.Findings, c.Verdict.Terms = v.Findings, v.Terms
	return nil
}

// ignoreDuplicate ignores a request with the content of an accepted or refused one.
func (ac *Acceptor) ignoreDuplicate(tx *store.Transaction, c *Submission, last task.Task) error {
	c.Row, c.Disposition = last, Duplicate
	if c.Line.Replayed {
		return nil
	}
	return tx.Log(store.Event(last, task.KindTaskDuplicate, map[string]any{"file": c.Line.File, "offset": c.Line.Offset}))
}

// refuse refuses a submission.
func (ac *Acceptor) refuse(c *Submission, why envelope.Finding) {
	c.Verdict = core.Object(c.Verdict, envelope.Enforce, why)
	c.Refuse()
}

// findParent finds the task whose run a submission comes from, and refuses the submission when
// the task has too many children. It works inside a transaction.
func (ac *Acceptor) findParent(tx *store.Transaction, c *Submission) error {
	if c.Verdict.Findings.Kind() == envelope.Unauthorized {
		return nil // the requester is not authenticated
	}
	if c.author != nil {
		c.knownParent, c.parent = c.author, c.author
	}
	ac.checkDelegation(c)
	if c.knownParent != nil {
		return ac.limitChild(tx, c)
	}
	wanted := c.Task.Named(envelope.ParentTask)
	if !ac.Agents.Known(c.Task.Requester) {
		if wanted != "" {
			c.warn("metadata."+envelope.ParentTask, "is left out: the requester is no agent here")
		}
		return nil
	}
	parent, found, err := ac.Reader.ParentOf(tx, c.Task.Requester, envelope.ID(wanted), "")
	if err != nil || !found {
		return err
	}
	c.parent = &parent
	if wanted != "" && string(parent.ID) != wanted {
		c.warn("metadata."+envelope.ParentTask, "is no task that the requester has now: read as "+string(parent.ID))
	}
	return ac.limitChild(tx, c)
}

// checkDelegation refuses a submission of an agent that may not delegate to the target agent
// (CAP-19).
func (ac *Acceptor) checkDelegation(c *Submission) {
	byDaemon := c.tie == envelope.Oversee || c.tie == envelope.Transfer && c.knownParent.Agent != c.Task.Requester // the daemon reassigns after a failure
	if !c.Verdict.Admit || byDaemon || c.Task.Agent == envelope.Mailboxd || c.Task.Agent == envelope.Everybody || !ac.Agents.Known(c.Task.Requester) {
		return
	}
	why := ac.Agents.Protocol.MayDelegate(c.Task.Requester, c.Task.Agent)
	if why != "" {
		ac.refuse(c, envelope.Finding{Kind: envelope.DelegationDenied, Field: cmp.Or(fieldsOf[c.dialect()].to, "target_agent"), Message: why})
	}
}

// limitChild refuses a child task that is too sensitive, as its ancestors are, or when its
// parent has too many children. The daemon's own requests to members and overseers have other
// limits.
func (ac *Acceptor) limitChild(tx *store.Transaction, c *Submission) error {
	if err := ac.raiseSensitivity(tx, c); err != nil {
		return err
	}
	if !c.Verdict.Admit || c.tie == envelope.Member || c.tie == envelope.Oversee {
		return nil
	}
	children, err := tx.CountChildren(c.parent.Seq)
	if err != nil {
		return err
	}
	lineage, err := ac.Reader.Lineage(tx.Task, *c.parent, children)
	if err != nil {
		return err
	}
	c.Verdict = lineage.Admit(c.Verdict, c.Task.Agent, ac.Agents.Mode(envelope.ControlLineage))
	if !c.Verdict.Admit {
		c.Refuse()
	}
	return nil
}
