package conversation

import (
	"slices"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// TieOf returns the tie between an agent's task and a task that it delegates. The run of
// the agent ends with a hold reason, or with an answer if hold is "". An agent with an
// answer doesn't wait for other tasks. Only the daemon creates the ties of overseers and
// members.
func TieOf(m envelope.Message, hold task.Reason) envelope.Tie {
	switch {
	case !Suspends(hold):
		return envelope.Fork
	case m.Tie == envelope.Oversee || m.Tie == envelope.Member || m.Tie == "":
		return envelope.Assist
	}
	return m.Tie
}

// Combines reports whether a delegation creates one task that combines the answers of
// several agents (CLOWL-09): its recipient is Everybody, or several agents take the parent
// over.
func Combines(m envelope.Message) bool {
	return slices.Contains(m.To, envelope.Everybody) || len(m.To) > 1 && m.Tie == envelope.Transfer
}

// Split returns one message for each task of a delegation. An idempotency key becomes a key for
// each: they are different commands.
func Split(m envelope.Message) (each []envelope.Message) {
	if len(m.To) <= 1 || Combines(m) {
		return []envelope.Message{m}
	}
	for _, to := range m.To {
		one := m
		one.To, one.Raw = []string{to}, nil
		if m.Clutch != nil && m.Clutch.IdempotencyKey != "" {
			part := *m.Clutch
			part.IdempotencyKey += ":" + to
			one.Clutch = &part
		}
		each = append(each, one)
	}
	return each
}

// AdmitCombined returns the verdict on a task that combines other agents' answers and has
// no run.
func AdmitCombined(t envelope.Task, findings envelope.Findings) task.Verdict {
	return task.Verdict{
		Admit: true, Hold: []task.Reason{task.Children}, Until: t.Deadline,
		Findings: findings, Terms: task.Terms{Deadline: t.Deadline},
	}
}

// Needed reports whether the parent's agent waits for a task, or may wait.
func Needed(c task.Child) bool {
	return c.Tie == envelope.Assist || c.Tie == envelope.Transfer || c.Tie == envelope.Member
}

// Pending reports whether a parent still waits for a task.
func Pending(c task.Child) bool { return Needed(c) && c.State != task.Done }

// Dependent reports whether a task with a tie ends with its parent.
func Dependent(tie envelope.Tie) bool {
	return tie == envelope.Member || tie == envelope.Transfer || tie == envelope.Assist || tie == envelope.Oversee
}

// EndsWith reports whether a task ends with its finished parent. A delegated task continues
// if the parent's agent has answered without it.
func EndsWith(c task.Child, above task.Task) bool {
	delegated := c.Tie == envelope.Transfer || c.Tie == envelope.Assist
	return Dependent(c.Tie) && (!delegated || NoAnswer(above.Status))
}

// Tied returns the latest child with a tie, and whether there is one.
func Tied(children []task.Child, tie envelope.Tie) (last task.Child, ok bool) {
	for _, c := range slices.Backward(children) {
		if c.Tie == tie {
			return c, true
		}
	}
	return last, false
}

// Reviewing returns the child in which an overseer reviews an answer now, and whether there
// is one.
func Reviewing(children []task.Child) (task.Child, bool) {
	at := slices.IndexFunc(children, func(c task.Child) bool { return c.Tie == envelope.Oversee && c.State != task.Done })
	if at < 0 {
		return task.Child{}, false
	}
	return children[at], true
}

// Retried returns the conversation of a task's next revision. The task keeps its tie,
// unless the parent is over: it has finished without the task.
func Retried(c task.Conversation, seq int64, over bool) task.Conversation {
	if c.Tie != "" && over {
		c.Tie = envelope.Fork
	}
	c.Task, c.Notified, c.Open, c.Rounds = seq, 0, Notified(c.Tie), 0
	return c
}

// Notified reports whether the requester of a task with a tie gets notifications. For other
// ties, the parent notifies its requester.
func Notified(tie envelope.Tie) bool { return tie != envelope.Oversee && tie != envelope.Transfer }

// NotifiedOfEnd reports whether the requester of a task gets the task's end as the reply to
// its cancellation. Another sender can cancel through a parent, and gets a reply at once.
func NotifiedOfEnd(t task.Task, c task.Conversation) bool {
	return c.Open && c.Tie != envelope.Member && t.Dialect == envelope.CLowl
}

// MayNotify reports whether messages about a task are possible. An AINL request without a
// parent has none.
func MayNotify(t task.Task) bool {
	return t.Parent != 0 || t.Dialect != envelope.AINL && t.Dialect != ""
}

// Silent reports whether a finished run can't have messages: it is the first run of an AINL
// request without a parent.
func Silent(t task.Task) bool {
	return t.State == task.Running && t.Attempt <= 1 && t.Parent == 0 && t.Dialect == envelope.AINL
}
