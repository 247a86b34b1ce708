package conversation

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// A Member is the result of one of several agents with the same work.
type Member struct {
	Agent  string
	Result envelope.Result
}

// Combine combines the results of several agents (CLOWL-09): ok if all are ok, partial if
// some have an answer, and an error if none has.
func Combine(id envelope.ID, members []Member) envelope.Result {
	r := envelope.Result{TaskID: id, AgentID: envelope.Mailboxd}
	good, whole := 0, true
	list := make([]member, len(members))
	for i, m := range members {
		list[i] = member{m.Agent, m.Result.TaskID, m.Result.Status, m.Result.Output.Summary, m.Result.Output.Extra, m.Result.Error.Kind}
		switch m.Result.Status {
		case envelope.OK:
			good++
		case envelope.Partial:
			good, whole = good+1, false
		default:
			whole = false
		}
	}
	r.Output.Summary = fmt.Sprintf("%d of %d agents answered.", good, len(members))
	r.Output.Extra = encode(map[string]any{"members": list})
	switch {
	case whole && good > 0:
		r.Status = envelope.OK
	case good > 0:
		r.Status = envelope.Partial
	default:
		r.Status = envelope.Failed
		r.Error = envelope.Error{Kind: envelope.DependencyFailed, Message: "none of the agents that were asked has an answer"}
	}
	return r
}

// A member is a Member in the output.
type member struct {
	Agent   string          `json:"agent"`
	TaskID  envelope.ID     `json:"task_id"`
	Status  envelope.Status `json:"status"`
	Summary string          `json:"summary"`
	Output  jsontext.Value  `json:"output,omitzero"`
	Kind    envelope.Kind   `json:"error_kind,omitzero"`
}
