package dispatch

import (
	"fmt"
	"slices"

	"mailboxd/envelope"
	"mailboxd/internal/conversation"
	"mailboxd/internal/core"
	"mailboxd/internal/ledger"
	"mailboxd/internal/task"
)

// accept finds out what a submission is to the ledger and writes that down. It
// runs inside a transaction that may be run again, so it sets all it changes.
//
// The id names the task, the content names the revision (AINL-55): the same
// content as the latest revision is a duplicate; content of an older revision
// is a new request when it was appended, and a duplicate when it was met
// while a file was read again.
func (ac *acceptor) accept(tx *transaction, known *known, c *submission) error {
	ac.runs.forgetRefusal(c.row.Seq)
	c.fate, c.row, c.parent, c.verdict = unnamed, task.Task{}, c.above, c.judged
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
		same, err := ac.same(tx, c, last)
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
		if executed && !ac.agents.Reruns(last.Agent) || last.Dialect != c.dialect() { // only AINL has revisions
			c.fate = conflict
			return tx.Log(contradiction(c, last))
		}
	}
	c.fate = accepted
	known.changed[c.task.ID] = true
	return ac.revise(tx, c, last, found)
}

// known is what the ledger had of the ids of a batch when that came, asked for
// at once: one by one, a third of a batch's time went into it.
type known struct {
	rows    map[envelope.ID]task.Task
	changed map[envelope.ID]bool // by the batch itself, so the ledger is asked again
	stale   bool                 // a message was heard, which may have changed any
}

func lookUp(tx *transaction, submissions []*submission) (*known, error) {
	ids := make([]envelope.ID, 0, len(submissions))
	for _, c := range submissions {
		if c.task.ID != "" {
			ids = append(ids, c.task.ID)
		}
	}
	rows, err := tx.Latests(ids)
	return &known{rows: rows, changed: map[envelope.ID]bool{}}, err
}

func (k *known) latest(tx *transaction, id envelope.ID) (task.Task, bool, error) {
	if k.stale || k.changed[id] {
		return tx.Latest(id)
	}
	row, found := k.rows[id]
	return row, found, nil
}

// fragment reports whether only an id could be read from the submission's line: it
// is no JSON, too long, or refused beside another envelope in its line. It
// refuses an id that is new, and never replaces what a whole request has asked for.
func (c *submission) fragment() bool {
	kind := c.verdict.Findings.Kind()
	return c.line.TooLong || kind == envelope.InvalidJSON || shapeless(kind) && slices.Contains(c.verdict.Findings, envelope.SharedLine)
}

// same reports whether a submission is nothing new.
func (ac *acceptor) same(tx *transaction, c *submission, last task.Task) (bool, error) {
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
// once; behind one that is in hand, the new one waits as received.
func (ac *acceptor) revise(tx *transaction, c *submission, last task.Task, found bool) error {
	if err := ac.trace(tx, c); err != nil {
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
		ac.runs.follow(last.Seq)
		if state, err = loadRevisions(tx, c.task.ID); err != nil {
			return err
		}
	}
	return ac.add(tx, c, state)
}

// add adds a submission to the tasks of its id.
func (ac *acceptor) add(tx *transaction, c *submission, state *core.State) error {
	if _, err := ac.writer.decideIn(tx, state, c.command(ac.agents.Protocol.Rule), c.now); err != nil {
		return err
	}
	c.row = state.Latest(c.task.ID).Task
	if !c.verdict.Admit && c.row.State == task.Done && c.inbound == nil {
		ac.runs.refuse(c.row, c.refusal, c.task.Callback)
	}
	return startConversation(tx, c)
}

// command is what a submission asks of the core.
func (c *submission) command(rule func(from, to string) string) *core.Accept {
	accept := &core.Accept{
		Request: c.task, Dialect: c.dialect(), Verdict: c.verdict, File: c.line.File, Offset: c.line.Offset, Received: c.now,
		Attempt: c.attempt, Unknown: c.unknown, Parent: c.parent, Result: c.refusal,
	}
	if c.parent != nil {
		accept.Rule = rule(c.parent.Agent, c.task.Agent)
	}
	return accept
}

// limitRequester refuses a submission of somebody who has as many tasks that are not
// over as they may (CLOWL-36). What they asked of several counts once.
func (ac *acceptor) limitRequester(tx *transaction, c *submission) error {
	most := ac.opts.QueuePerRequester
	if most <= 0 || !c.verdict.Admit || c.tie == envelope.Member || c.tie == envelope.Oversee {
		return nil
	}
	open, err := tx.OpenOf(c.task.Requester)
	if err != nil || open < most {
		return err
	}
	ac.object(c, envelope.Finding{Kind: envelope.Capacity, Message: fmt.Sprintf("%q has %d tasks that are not over, as many as anybody may", c.task.Requester, open)})
	return nil
}

// dialect is the one in which a submission is said.
func (c *submission) dialect() envelope.Dialect {
	if c.said == nil || c.said.Dialect == "" {
		return envelope.AINL
	}
	return c.said.Dialect
}

// startConversation records the conversation of an accepted submission; an AINL request that
// belongs to no other task has none.
func startConversation(tx *transaction, c *submission) error {
	if c.said == nil || c.said.Dialect == "" && c.tie == "" {
		return nil
	}
	return tx.StartTalk(task.Conversation{
		Task: c.row.Seq, Message: c.said.ID, Thread: c.said.Thread, Trace: c.said.Trace, Tie: c.tie,
		Open: conversation.Notified(c.tie),
	})
}

// heighten judges a submission again that is less sensitive by itself than what it is
// below. It runs inside a transaction.
func (ac *acceptor) heighten(tx *transaction, c *submission) error {
	if !c.verdict.Admit || c.parent == nil || c.task.Agent == envelope.Ourselves {
		return nil
	}
	most, err := ac.reader.sensitivityOf(c.parent.Seq, func(seq int64) (row task.Task, raw []byte, err error) {
		row, known, err := tx.Task(seq)
		if err == nil && !known {
			err = ledger.ErrUnknown
		}
		if err == nil {
			raw, err = tx.Raw(seq)
		}
		return row, raw, err
	})
	if err != nil || most <= c.task.Sensitivity {
		return err
	}
	t, before := c.task, c.verdict
	t.Sensitivity = most
	v := ac.reader.judge(t, before.Findings.Warnings(), c.now)
	v.Findings = unrepeated(v.Findings)
	if !v.Admit {
		c.verdict = v
		c.refuse()
		return nil
	}
	c.verdict.Findings, c.verdict.Terms = v.Findings, v.Terms
	return nil
}

// unrepeated are findings, each once.
func unrepeated(all envelope.Findings) (each envelope.Findings) {
	for _, f := range all {
		if !slices.Contains(each, f) {
			each = append(each, f)
		}
	}
	return each
}
