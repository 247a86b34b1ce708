package conversation

import (
	"slices"

	"mailboxd/envelope"
	"mailboxd/internal/task"
)

// TieOf returns how a task that an agent delegates belongs to the agent's own, whose run
// ends in a hold or in "", an answer. An agent that has answered waits for no other, and
// the daemon alone asks overseers.
func TieOf(m envelope.Message, hold task.Reason) envelope.Tie {
	switch {
	case !Suspends(hold):
		return envelope.Fork
	case m.Tie == envelope.Oversee || m.Tie == envelope.Member || m.Tie == "":
		return envelope.Assist
	}
	return m.Tie
}

// Combines reports whether a delegation is one task that combines the answers of several
// agents (CLOWL-09): it is for Everybody, or several own the task above from now on.
func Combines(m envelope.Message) bool {
	return slices.Contains(m.To, envelope.Everybody) || len(m.To) > 1 && m.Tie == envelope.Transfer
}

// Split returns a delegation as one message for each task that it asks for.
func Split(m envelope.Message) (each []envelope.Message) {
	if len(m.To) <= 1 || Combines(m) {
		return []envelope.Message{m}
	}
	for _, to := range m.To {
		one := m
		one.To, one.Raw = []string{to}, nil
		each = append(each, one)
	}
	return each
}

// AdmitCombined returns the verdict on a task that waits for the answers of several
// agents and is run by none.
func AdmitCombined(t envelope.Task, findings envelope.Findings) task.Verdict {
	return task.Verdict{
		Admit: true, Hold: []task.Reason{task.Children}, Until: t.Deadline,
		Findings: findings, Terms: task.Terms{Deadline: t.Deadline},
	}
}

// Needed reports whether the agent of the task above waits for a task, or may wait.
func Needed(c task.Child) bool {
	return c.Tie == envelope.Assist || c.Tie == envelope.Transfer || c.Tie == envelope.Member
}

// Pending reports whether the task above still waits for a task.
func Pending(c task.Child) bool { return Needed(c) && c.State != task.Done }

// Dependent reports whether a task of a tie ends with the one above.
func Dependent(tie envelope.Tie) bool {
	return tie == envelope.Member || tie == envelope.Transfer || tie == envelope.Assist || tie == envelope.Oversee
}

// EndsWith reports whether a task ends with the one above, which is done. A delegated
// task goes on when the agent above has answered without it.
func EndsWith(c task.Child, above task.Task) bool {
	delegated := c.Tie == envelope.Transfer || c.Tie == envelope.Assist
	return Dependent(c.Tie) && (!delegated || NoAnswer(above.Status))
}

// Tied returns the last task of a tie, and whether there is one.
func Tied(children []task.Child, tie envelope.Tie) (last task.Child, ok bool) {
	for _, c := range slices.Backward(children) {
		if c.Tie == tie {
			return c, true
		}
	}
	return last, false
}

// Reviewing returns the task in which an overseer reviews an answer now, and whether
// there is one.
func Reviewing(children []task.Child) (task.Child, bool) {
	at := slices.IndexFunc(children, func(c task.Child) bool { return c.Tie == envelope.Oversee && c.State != task.Done })
	if at < 0 {
		return task.Child{}, false
	}
	return children[at], true
}

// Retried returns the conversation of a task that is run again as another revision. The
// task stays tied to the one above, which may be over: it has done without the task then.
func Retried(c task.Conversation, seq int64, over bool) task.Conversation {
	if c.Tie != "" && over {
		c.Tie = envelope.Fork
	}
	c.Task, c.Notified, c.Open, c.Rounds = seq, 0, Notified(c.Tie), 0
	return c
}

// Notified reports whether the requester of a task of a tie gets notifications. That of
// the others is told by the task above.
func Notified(tie envelope.Tie) bool { return tie != envelope.Oversee && tie != envelope.Transfer }

// NotifiedOfEnd reports whether the requester of a task will get its end as the answer
// to a message that cancels it. Another sender, who may cancel because of a task above,
// gets an answer at once.
func NotifiedOfEnd(t task.Task, c task.Conversation) bool {
	return c.Open && c.Tie != envelope.Member && t.Dialect == envelope.CLowl
}

// MayNotify reports whether anybody may get messages about a task: nobody does about a
// request in AINL that belongs to no other task.
func MayNotify(t task.Task) bool {
	return t.Parent != 0 || t.Dialect != envelope.AINL && t.Dialect != ""
}

// Silent reports whether no message can be about a task yet whose run is over: it is
// the first run of a request in AINL that belongs to no other task.
func Silent(t task.Task) bool {
	return t.State == task.Running && t.Attempt <= 1 && t.Parent == 0 && t.Dialect == envelope.AINL
}
