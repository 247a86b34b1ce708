package agent

import (
	"errors"
	"fmt"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/task"
	"mailboxd/mailbox"
)

// An Inbox says where an agent fetches its tasks that is not run by us, such as
// an editor or a person. Such an agent has no command, no process and no run
// directory.
type Inbox struct {
	File  string        // below the mailbox, with slashes (AINL-21)
	Lease time.Duration // how long who claims a task has it, unless they renew that; 0: ten minutes
}

func (in *Inbox) withDefaults() *Inbox {
	filled := *in
	setDefault(&filled.Lease, 10*time.Minute)
	return &filled
}

func (b Binding) checkInbox() error {
	switch {
	case len(b.Command) > 0 || b.Worker != nil:
		return errors.New("inbox: an agent has exec, worker or inbox, one of them")
	case b.Inbox.Lease < 0:
		return errors.New("inbox.lease: must not be negative")
	}
	if err := mailbox.CheckInbox(b.Inbox.File); err != nil {
		return fmt.Errorf("inbox.file: %w", err)
	}
	return nil
}

// Answered is the outcome of a job that was answered by whoever fetched it: an
// AgentTaskResult, or its output, held against what was promised as any agent's
// answer is. An answer that cannot be read, or is another task's or agent's, is
// an error, and nobody's outcome: it can be mended. Exit says when the job was
// begun and answered; there was no process.
func (a *Agents) Answered(j task.Job, raw []byte, exit task.Exit) (task.Outcome, error) {
	g, ok := a.byID[j.Task.Agent]
	if !ok {
		g = a.stranger(j)
	}
	said, err := g.submitted(j, raw)
	if said = g.attribute(j, said, err); said.err != nil {
		return task.Outcome{}, said.err
	}
	setDefault(&said.result.Status, envelope.OK)
	if said.result.Status == envelope.Rejected {
		said.result.Status = envelope.Failed // rejected means that no agent ran
		said.result.Review.Ask("the agent says it rejected the task")
	}
	o := task.Outcome{Result: g.complete(j, exit, said), Exit: exit}
	addMessages(&o, said)
	g.addUnanswered(&o, j, said)
	return o, nil
}
