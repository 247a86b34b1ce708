package dispatch

import (
	"fmt"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/ledger"
	"mailboxd/internal/task"
)

// accept finds out what a claim is to the ledger and writes that down. It
// runs inside a transaction that may be run again, so it sets all it changes.
//
// The id names the task, the content names the revision (AINL-55): the same
// content as the latest revision is a duplicate; content of an older revision
// is a new request when it was appended, and a duplicate when it was met
// while a file was read again.
func (d *Dispatcher) accept(tx *ledger.Tx, known *known, c *claim) error {
	if c.heard != nil {
		known.stale = true
		return d.hear(tx, c)
	}
	d.runs.forgetRefusal(c.row.Seq)
	c.fate, c.row, c.instead, c.parent, c.verdict = unnamed, task.Task{}, nil, c.above, c.judged
	if c.task.ID == "" {
		return tx.Log(lineRejected(c))
	}
	last, found, err := known.latest(tx, c.task.ID)
	if err != nil {
		return err
	}
	if found && c.fragment() && !shapeless(last.Kind) {
		return tx.Log(lineRejected(c)) // nobody knows what it would have said
	}
	if found {
		same, err := d.same(tx, c, last)
		if err != nil {
			return err
		}
		if same {
			c.fate = duplicate
			if c.line.Replayed {
				return nil // a million lines met again are not a million events
			}
			return tx.Log(event(last, task.KindTaskDuplicate, map[string]any{"file": c.line.File, "offset": c.line.Offset}))
		}
		executed, err := tx.Executed(c.task.ID)
		if err != nil {
			return err
		}
		if executed && !d.agents.Reruns(last.Agent) || last.Dialect != c.dialect() { // only AINL has revisions
			c.fate = conflict
			return tx.Log(contradiction(c, last))
		}
	}
	c.fate = accepted
	known.changed[c.task.ID] = true
	return d.revise(tx, c, last, found)
}

// known is what the ledger had of the ids of a batch when that came, asked for
// at once: one by one, a third of a batch's time went into it.
type known struct {
	rows    map[envelope.ID]task.Task
	changed map[envelope.ID]bool // by the batch itself, so the ledger is asked again
	stale   bool                 // a message was heard, which may have changed any
}

func lookUp(tx *ledger.Tx, claims []*claim) (*known, error) {
	ids := make([]envelope.ID, 0, len(claims))
	for _, c := range claims {
		if c.task.ID != "" {
			ids = append(ids, c.task.ID)
		}
	}
	rows, err := tx.Latests(ids)
	return &known{rows: rows, changed: map[envelope.ID]bool{}}, err
}

func (k *known) latest(tx *ledger.Tx, id envelope.ID) (task.Task, bool, error) {
	if k.stale || k.changed[id] {
		return tx.Latest(id)
	}
	row, found := k.rows[id]
	return row, found, nil
}

// fragment reports whether only an id could be read from the claim's line: it
// is no JSON, too long, or refused beside another envelope in its line. It
// refuses an id that is new, and never replaces what a whole request has asked for.
func (c *claim) fragment() bool {
	kind := c.verdict.Findings.Kind()
	return c.line.TooLong || kind == envelope.InvalidJSON || shapeless(kind) && slices.Contains(c.verdict.Findings, envelope.SharedLine)
}

// same reports whether a claim is nothing new.
func (d *Dispatcher) same(tx *ledger.Tx, c *claim, last task.Task) (bool, error) {
	if last.Hash == c.task.Hash {
		return true, nil
	}
	if !c.line.Replayed {
		return false, nil
	}
	_, known, err := tx.Known(c.task.ID, c.task.Hash)
	return known, err
}

// revise adds the next revision. One that has not started is replaced at
// once; behind one that runs, the new one waits as received.
func (d *Dispatcher) revise(tx *ledger.Tx, c *claim, last task.Task, found bool) error {
	if err := d.trace(tx, c); err != nil {
		return err
	}
	if !found || last.State == task.Done {
		if err := d.limitRequester(tx, c); err != nil {
			return err
		}
	}
	if err := d.reconcile(c, last.Revision+1); err != nil {
		return err
	}
	row := newRow(c)
	waits := false
	switch {
	case !found:
	case last.State == task.Done:
		row.Replaces = true
	case inHand(last, c.now):
		waits = true
	default:
		waits = last.State == task.Received
		replaced := last
		row.Replaces, c.instead = last.Replaces, &replaced
		if slices.Contains(last.Reasons, task.Operator) && c.verdict.Admit { // the id is held, whatever it says
			v := withReasons(c.verdict, task.Operator)
			row.State, row.Reasons, row.Until = task.Held, v.Hold, v.Until
		}
		if err := supersede(tx, last); err != nil {
			return err
		}
	}
	if found {
		d.runs.follow(last.Seq)
		row.Revision = last.Revision + 1
	}
	if waits {
		row.State, row.Reasons, row.Until = task.Received, slices.Concat(operatorOf(last), recoveredOf(c.verdict.Hold)), time.Time{}
	}
	return d.add(tx, c, row, waits)
}

// limitRequester refuses a claim of somebody who has as many tasks that are not
// over as they may (CLOWL-36). What they asked of several counts once.
func (d *Dispatcher) limitRequester(tx *ledger.Tx, c *claim) error {
	most := d.opts.QueuePerRequester
	if most <= 0 || !c.verdict.Admit || c.tie == envelope.Member || c.tie == envelope.Oversee {
		return nil
	}
	open, err := tx.OpenOf(c.task.Requester)
	if err != nil || open < most {
		return err
	}
	d.object(c, envelope.Finding{Kind: envelope.Capacity, Message: fmt.Sprintf("%q has %d tasks that are not over, as many as anybody may", c.task.Requester, open)})
	return nil
}

// add writes a new revision down, and at once its refusal if it has one.
func (d *Dispatcher) add(tx *ledger.Tx, c *claim, row task.Task, waits bool) error {
	asks := wantsApproval(row.Reasons)
	if asks {
		row.Until = earliest(row.Until, d.decisionDue(row, c.now))
	}
	var err error
	if row.Seq, err = tx.Add(row, c.task.Raw); err != nil {
		return err
	}
	c.row = row
	if err := startTalk(tx, c); err != nil {
		return err
	}
	if err := tx.Log(arrival(c)); err != nil {
		return err
	}
	if c.parent != nil {
		data := map[string]any{"child": row.ID, "revision": row.Revision}
		if rule := d.agents.Protocol.Rule(c.parent.Agent, row.Agent); rule != "" {
			data["rule"] = rule // which is words, and not for us to hold anybody to (CAP-20)
		}
		if err := tx.Log(event(*c.parent, task.KindTaskDelegated, data)); err != nil {
			return err
		}
	}
	switch {
	case asks:
		return d.ask(tx, row, c.verdict, c.now)
	case waits || c.verdict.Admit:
		return nil
	}
	if c.row, err = reject(tx, row, c.refusal); err == nil && c.heard == nil {
		d.runs.refuse(c.row, c)
	}
	return err
}

// operatorOf is an operator's hold, if the revision before waits under one.
func operatorOf(last task.Task) []task.Reason {
	if last.State == task.Received && slices.Contains(last.Reasons, task.Operator) {
		return []task.Reason{task.Operator}
	}
	return nil
}

// dialect is the one in which a claim is said.
func (c *claim) dialect() envelope.Dialect {
	if c.said == nil || c.said.Dialect == "" {
		return envelope.AINL
	}
	return c.said.Dialect
}

// newRow is a claim as the ledger's first revision of it.
func newRow(c *claim) task.Task {
	t, v := c.task, c.verdict
	row := task.Task{
		ID: t.ID, Revision: 1, Latest: true, Hash: t.Hash, Dialect: c.dialect(),
		State: task.Received, Attempt: c.attempt,
		Agent: t.Agent, Requester: t.Requester, Type: t.Type,
		Deadline: t.Deadline, Received: c.now,
		File: c.line.File, Offset: c.line.Offset,
	}
	if c.parent != nil {
		row.Parent, row.Depth = c.parent.Seq, c.parent.Depth+1
	}
	switch {
	case !v.Admit:
	case len(v.Hold) > 0:
		row.State, row.Reasons, row.Until = task.Held, v.Hold, v.Until
	default:
		row.State = task.Queued
	}
	return row
}

// supersede ends a revision that was replaced before it started. It has no
// result: the result file is for the latest revision.
func supersede(tx *ledger.Tx, row task.Task) error {
	moved, err := tx.Move(row.Seq, row.State, row.Attempt, task.Change{To: task.Done, Status: envelope.Stopped})
	if err != nil || !moved {
		return err
	}
	if err := tx.MarkSettled(row.Seq); err != nil {
		return err
	}
	if err := endUnanswered(tx, row, time.Now()); err != nil {
		return err
	}
	if err := withdraw(tx, row, time.Now(), "a newer request took its place"); err != nil {
		return err
	}
	return tx.Log(event(row, task.KindTaskSuperseded, nil))
}

// reject ends a task with a refusal, and returns its row as it now is.
func reject(tx *ledger.Tx, row task.Task, no *refusal) (task.Task, error) {
	change := task.Change{To: task.Done, Status: no.status, Kind: no.findings.Kind(), Result: no.result}
	moved, err := tx.Move(row.Seq, row.State, row.Attempt, change)
	if err != nil || !moved {
		return task.Task{}, err
	}
	row.State, row.Status, row.Kind = change.To, change.Status, change.Kind
	return row, tx.Log(event(row, task.KindTaskRejected, map[string]any{"reasons": no.findings.Refusals().Words()}))
}
