package exchange

import (
	"errors"
	"fmt"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// A clutchReceiver has the rules of Clutch for messages in lines.
type clutchReceiver struct{ *Receiver }

func (rc *Receiver) clutch() clutchReceiver { return clutchReceiver{rc} }

// inRunOf names the run and the sender of a message. The ids of a sender are its own: nobody else
// can take one before.
func inRunOf(m envelope.Message) string { return m.From + "\n" + m.Clutch.RunID }

// receivedBefore ignores a Clutch message that was received before in its run, and refuses one
// whose id has another content there (CLUTCH-02, CLUTCH-51). It records any other message as
// received.
func (rc clutchReceiver) receivedBefore(tx *store.Transaction, c *Submission) (bool, error) {
	m := c.Inbound.Message
	if m.ID == "" || m.Clutch.RunID == "" {
		return false, nil // it is refused for that
	}
	hash, found, err := tx.MessageHash(inRunOf(m), m.ID)
	switch {
	case err != nil:
		return false, err
	case !found:
		return false, tx.SetMessageHash(inRunOf(m), m.ID, m.Hash)
	case hash == m.Hash && c.Line.Replayed:
		return true, nil
	case hash == m.Hash:
		return true, tx.Log(store.Event(task.Task{}, task.KindMessageDuplicate, map[string]any{"file": c.Line.File, "offset": c.Line.Offset}))
	}
	return true, rc.deny(tx, c, envelope.Finding{Kind: envelope.DuplicateConflict, Field: "id", Message: "was sent with other content before, in the same run"})
}

// receiveAttempt takes a request for a task that is there already. The same command with a
// higher attempt runs a task again that ended without success; with any other attempt it is a
// duplicate (CLUTCH-53). Another command is refused. It reports whether the request is dealt
// with.
func (rc clutchReceiver) receiveAttempt(tx *store.Transaction, c *Submission, last task.Task) (bool, error) {
	if c.isFragment() || last.Dialect != envelope.Clutch {
		return true, rc.receiveAgain(tx, c, last)
	}
	raw, err := tx.Raw(last.Seq)
	if errors.Is(err, ledger.ErrUnknown) { // too old to be kept, so it can't run again
		return true, rc.receiveAgain(tx, c, last)
	}
	if err != nil {
		return true, err
	}
	before, _ := dialect.DecodeTask(envelope.Clutch, raw, rc.Opts.Reading)
	if !conversation.SameClutch(c.Task, before) {
		return true, rc.receiveAgain(tx, c, last)
	}
	if !c.Verdict.Admit || c.Task.Clutch.Attempt <= before.Clutch.Attempt || !core.Retriable(last) {
		return true, rc.Acceptor.ignoreDuplicate(tx, c, last)
	}
	return false, nil
}

// checkCommand finds out whether a request with an idempotency key asks for a command that
// another task carries out. It returns that task, or a finding against the request when the key
// belongs to another command (CLUTCH-52). A refused command doesn't keep its key.
func checkCommand(tx *store.Transaction, c *Submission) (leader envelope.ID, why envelope.Finding, err error) {
	command, found, err := CarriedOut(tx, c.Task)
	if err != nil || !found || !c.Verdict.Admit {
		return "", why, err
	}
	if conversation.CommandHash(c.Task) != command.Hash {
		message := fmt.Sprintf("belongs to another command, which task %s carries out", command.Task)
		return "", envelope.Finding{Kind: envelope.DuplicateConflict, Field: "idempotency_key", Message: message}, nil
	}
	return command.Task, why, nil
}

// CarriedOut returns the command with the idempotency key of a request, if another task carries it
// out: a task that was refused and never ran doesn't.
func CarriedOut(tx *store.Transaction, t envelope.Task) (c task.Command, found bool, err error) {
	if t.Clutch == nil || t.Clutch.IdempotencyKey == "" {
		return c, false, nil
	}
	c, found, err = tx.Command(t.Requester, t.Clutch.RunID, t.Clutch.IdempotencyKey)
	if err != nil || !found || c.Task == t.ID {
		return c, false, err
	}
	row, found, err := tx.Latest(c.Task)
	if err == nil && found && row.State == task.Done && row.Status == envelope.Rejected {
		found, err = tx.Executed(c.Task)
	}
	return c, found, err
}

// keepCommand records the command of an accepted request with an idempotency key: the task
// follows the leader, or carries the command out itself.
func keepCommand(tx *store.Transaction, c *Submission, leader envelope.ID) error {
	key := c.Task.Clutch
	switch {
	case key == nil || key.IdempotencyKey == "" || !c.Verdict.Admit:
		return nil
	case leader != "":
		return tx.Follow(c.Row.ID, leader)
	}
	return tx.SetCommand(task.Command{
		Sender: c.Task.Requester, Run: key.RunID, Key: key.IdempotencyKey, Hash: conversation.CommandHash(c.Task), Task: c.Row.ID,
	})
}

// findParent finds the parent of a Clutch request: the task that it names, or the task on
// which its sender works. It returns a finding when the rules of runs don't allow the parent
// (CLUTCH-23).
func (rc clutchReceiver) findParent(tx *store.Transaction, c *Submission) (why envelope.Finding, err error) {
	m := *c.Message
	if c.author != nil {
		return rc.useParent(tx, c, *c.author, "run_id", tieTo(*c.author, m))
	}
	if m.Clutch.Parent == "" {
		parent, works, err := rc.Reader.ResolveWork(tx, m)
		if err != nil || !works {
			return why, err
		}
		return rc.useParent(tx, c, parent, "run_id", tieTo(parent, m))
	}
	parent, found, err := tx.Latest(m.Clutch.Parent)
	switch {
	case err != nil:
		return why, err
	case !found:
		return envelope.Finding{Kind: envelope.InvalidEnvelope, Field: "parent_task_id", Message: "names no task here"}, nil
	case m.From != parent.Agent && m.From != parent.Requester:
		return envelope.Finding{Kind: envelope.Unauthorized, Field: "parent_task_id", Message: "names a task that the sender neither requested nor works on"}, nil
	}
	return rc.useParent(tx, c, parent, "parent_task_id", tieTo(parent, m))
}

// tieTo returns the tie of a request to its parent. An agent that names its task may wait for the
// request; a requester goes on by itself.
func tieTo(parent task.Task, m envelope.Message) envelope.Tie {
	if m.Clutch.Parent != "" && m.From == parent.Agent && conversation.InWork(parent) {
		return envelope.Assist
	}
	return envelope.Fork
}

// useParent makes a task the parent of a request, unless the request is for another run or for
// one of the tasks above.
func (rc clutchReceiver) useParent(tx *store.Transaction, c *Submission, parent task.Task, field string, tie envelope.Tie) (why envelope.Finding, err error) {
	run, err := tx.RunOf(parent)
	if err != nil {
		return why, err
	}
	if run != c.Message.Clutch.RunID {
		message := fmt.Sprintf("must be a run or task of the run %q, to which the task %s above it belongs", run, parent.ID)
		return envelope.Finding{Kind: envelope.InvalidEnvelope, Field: field, Message: message}, nil
	}
	for above, found := parent, true; found && err == nil; above, found, err = tx.Task(above.Parent) {
		if above.ID == c.Task.ID {
			return envelope.Finding{Kind: envelope.InvalidEnvelope, Field: field, Message: "names a task below this one"}, nil
		}
	}
	c.knownParent, c.parent, c.tie = &parent, &parent, tie
	return why, err
}

// receiveOther takes a Clutch message that moves no task. A chat.message goes to its recipients.
// A tool call of the agent of a task gets the reply that no tool is available, or ends the task if
// the tool is not allowed (CLUTCH-33, CLUTCH-61). A message of an agent about itself is recorded.
func (rc clutchReceiver) receiveOther(tx *store.Transaction, c *Submission, found bool) error {
	m := c.Inbound.Message
	switch {
	case c.Inbound.answer != nil:
		return rc.receiveAnswer(tx, c)
	case conversation.OnlyDaemonSends(m.Act):
		return rc.deny(tx, c, envelope.Finding{Kind: envelope.Unauthorized, Field: "type", Message: "is sent by mailboxd alone"})
	case conversation.OnlyRecorded(m.Act):
		return rc.record(tx, c)
	case m.Act == envelope.Calls:
		if !found || m.From != c.Row.Agent {
			return rc.deny(tx, c, envelope.Finding{Kind: envelope.Unauthorized, Field: "from.agent_id", Message: "has no such task for which it could call a tool"})
		}
		if err := rc.record(tx, c); err != nil {
			return err
		}
		return rc.reply(tx, c, conversation.RefuseTool(m, c.Row, c.Now))
	}
	return rc.receiveInfo(tx, c)
}
