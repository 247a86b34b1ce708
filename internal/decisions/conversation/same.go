package conversation

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/task"
)

// sameMember is the member of a result that names the task that carried the command out.
const sameMember = "mbx.same_command_as"

// Same returns the result of a task that follows another one: the result of that one. The task
// has cost nothing.
func Same(t, leader task.Task, r envelope.Result) envelope.Result {
	members := map[string]jsontext.Value{}
	_ = json.Unmarshal(r.Extra, &members) // there may be none
	members[sameMember] = encode(leader.ID)
	r.TaskID, r.Cost, r.Extra = t.ID, &envelope.Cost{}, encode(members)
	if r.Output.Summary == "" {
		r.Output.Summary = "Task " + string(leader.ID) + " carried the command out. Its answer is no longer kept."
	}
	return r
}

// SameCommand returns the verdict on a task that follows another one. Its agent doesn't run, so
// policy doesn't judge it.
func SameCommand(t envelope.Task, findings envelope.Findings) task.Verdict {
	return task.Verdict{
		Admit: true, Hold: []task.Reason{task.SameCommand}, Until: t.Deadline,
		Findings: findings.Warnings(), Terms: task.Terms{Deadline: t.Deadline},
	}
}

// SameClutch reports whether two Clutch requests for one task ask for the same, in any attempt
// (CLUTCH-53).
func SameClutch(a, b envelope.Task) bool {
	if a.Clutch == nil || b.Clutch == nil {
		return false
	}
	return CommandHash(a) == CommandHash(b) && a.Clutch.Parent == b.Clutch.Parent && a.Clutch.IdempotencyKey == b.Clutch.IdempotencyKey
}

// CommandHash names the command of a Clutch request.
func CommandHash(t envelope.Task) string {
	return dialect.CommandHash(envelope.Message{Raw: t.Raw, Dialect: envelope.Clutch})
}
