package agent

import (
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/task"
)

// dispatch returns the standard input of a program of the profile clutch-worker. A limit that
// the task doesn't have is left out.
func (g *Agent) dispatch(j task.Job) []byte {
	f := newFacts(j)
	context := map[string]jsontext.Value{"attempt": strconv.AppendInt(nil, int64(j.Attempt), 10)}
	say := func(name string, value any) {
		if text, err := json.Marshal(value, lenient); err == nil {
			context[name] = text
		}
	}
	say("agentId", g.binding.ID)
	say("runDir", f.RunDir)
	if f.Deadline != "" {
		say("deadline", f.Deadline)
	}
	if j.Tools != nil {
		say("allowedTools", j.Tools)
	}
	if j.Allowance.Tokens != nil {
		say("maxTokens", *j.Allowance.Tokens)
	}
	if j.Allowance.USDCents != nil {
		say("maxCostCents", *j.Allowance.USDCents)
	}
	if g.binding.Stdin == Action {
		return append(dialect.DispatchAction(j.Task, j.Allowance, context), '\n')
	}
	return append(dialect.Dispatch(j.Task, context), '\n')
}

// decodeDispatched decodes what such a program printed.
func decodeDispatched(raw []byte, j task.Job) (answer, error) {
	r, findings := dialect.DecodeWorkerReply(raw, j.Task)
	if err := refusal(findings); err != nil {
		return answer{kind: findings.Kind()}, err
	}
	return answer{result: r, object: member(r.Encode(), "output")}, nil
}
