package agent

import (
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/mailbox"
)

// An Inbox says where an external agent, such as an editor or a person, fetches its tasks.
// Such an agent has no command, no process and no run directory.
type Inbox struct {
	File  string        // below the mailbox, with slashes (AINL-21)
	Lease time.Duration // of a claim, renewable; 0: ten minutes
}

func (in *Inbox) withDefaults() *Inbox {
	filled := *in
	setDefault(&filled.Lease, 10*time.Minute)
	return &filled
}

func (b Binding) checkInbox() *FieldError {
	switch {
	case len(b.Command) > 0 || b.Worker != nil:
		return wrong("inbox", "an agent has exec, worker, inbox, http, a2a, mcp or remote, one of them")
	case b.Inbox.Lease < 0:
		return wrong("inbox.lease", "must not be negative")
	}
	if err := mailbox.CheckInbox(b.Inbox.File); err != nil {
		return wrong("inbox.file", "%v", err)
	}
	return nil
}

// Answered returns the outcome of a job with a submitted answer: an AgentTaskResult or its
// output, checked like any agent's answer. An answer that can't be decoded, or names
// another task or agent, is an error without an outcome: the submitter can correct it. Exit
// has the times of the claim and the answer; there was no process.
func (a *Agents) Answered(j task.Job, raw []byte, exit task.Exit) (task.Outcome, error) {
	g, ok := a.byID[j.Task.Agent]
	if !ok {
		g = a.removedAgent(j)
	}
	reply, err := g.decodeSubmission(j, raw)
	if reply = g.checkIdentity(j, reply, err); reply.err != nil {
		return task.Outcome{}, reply.err
	}
	setDefault(&reply.result.Status, envelope.OK)
	if reply.result.Status == envelope.Rejected {
		reply.result.Status = envelope.Failed // rejected means that no agent ran
		reply.result.Review.Ask("the agent says it rejected the task")
	}
	o := task.Outcome{Result: g.complete(j, exit, reply), Exit: exit}
	addMessages(&o, reply)
	g.addUnanswered(&o, j, reply)
	return o, nil
}
