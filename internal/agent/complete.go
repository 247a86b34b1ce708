package agent

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/runner"
)

// complete fills in what is ours to say, and holds the result against what was
// promised: to the requester by the task, to us by the manifest.
func (g *Agent) complete(j Job, exit runner.Exit, r envelope.Result) envelope.Result {
	r.TaskID, r.AgentID = j.Task.ID, g.binding.ID
	r.Time = envelope.TimeUsed{Started: exit.Started, Finished: exit.Finished, Wall: exit.Wall}
	if g.binding.Output != Envelope {
		r.Cost = nil // nobody metered it
	}
	if r.Status == envelope.Rejected && exit.PID != 0 {
		r.Status = envelope.Failed // rejected means that no agent ran
		r.Review.Ask("the agent says it rejected the task")
	}
	keepContract(j, &r)
	keepBudget(j, &r)
	g.keepMode(&r)
	setError(&r)
	if r.Output.Summary == "" && (g.binding.Output != Text || r.Status != envelope.OK) {
		r.Output.Summary = summary(r)
	}
	for _, s := range exit.Survivors {
		if s.Killed {
			r.Review.Ask(fmt.Sprintf("the agent left %q running, which was killed", s.Command))
		}
	}
	g.artifacts(j, &r)
	g.provenance(j, &r)
	return r
}

// summary stands for the one an agent did not give (AINL-65).
func summary(r envelope.Result) string {
	if r.Error.Message != "" {
		return r.Error.Message
	}
	return "The agent gave no summary."
}

// setError names the kind of a failure that the agent reports (AINL-71).
func setError(r *envelope.Result) {
	if r.Status != envelope.Failed {
		return
	}
	setDefault(&r.Error.Kind, envelope.AgentError)
	if r.Error.Message == "" {
		r.Error.Message = short(r.Output.Summary)
	}
}

// fail turns a result that claims success into an error; a failure keeps its
// own first cause.
func fail(r *envelope.Result, kind envelope.Kind, message string) {
	if r.Status == envelope.Failed && r.Error.Kind != "" {
		return
	}
	r.Status, r.Error = envelope.Failed, envelope.Error{Kind: kind, Message: short(message)}
}

// keepContract holds an answer against must_include_fields: each has to be
// there and not null, beside the output or in it (AINL-43, F5). An answer that
// admits failure is not asked for what it says is missing.
func keepContract(j Job, r *envelope.Result) {
	if j.Task.Contract == nil || r.Status != envelope.OK && r.Status != envelope.Partial {
		return
	}
	said := jsontext.Value(r.Encode())
	output := member(said, "output")
	var missing []string
	for _, name := range j.Task.Contract.MustInclude {
		if !present(said, name) && !present(output, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		fail(r, envelope.ContractViolation, fmt.Sprintf("the answer lacks required fields: %q", missing))
	}
}

// present reports whether an object has a member of that name, or one on that
// dotted path, which is not null.
func present(object jsontext.Value, name string) bool {
	if v := member(object, name); v != nil {
		return v.Kind() != 'n'
	}
	first, rest, dotted := strings.Cut(name, ".")
	return dotted && present(member(object, first), rest)
}

// member returns a member of an object, nil when there is none.
func member(object jsontext.Value, name string) jsontext.Value {
	var members map[string]jsontext.Value
	if object.Kind() != '{' || json.Unmarshal(object, &members) != nil {
		return nil
	}
	return members[name]
}

// keepBudget holds what was spent against the task's limits (AINL-46).
func keepBudget(j Job, r *envelope.Result) {
	if r.Cost == nil {
		return
	}
	over := func(what string, used int64, limit *int64) {
		if limit == nil || used <= *limit {
			return
		}
		message := fmt.Sprintf("the agent used %d %s of %d", used, what, *limit)
		fail(r, envelope.BudgetExceeded, message)
		r.Review.Ask(message)
	}
	over("tokens", r.Cost.Tokens, j.Task.Budget.Tokens)
	over("US cents", r.Cost.USDCents, j.Task.Budget.USDCents)
}

// keepMode holds what was done against the manifest (AINL-15).
func (g *Agent) keepMode(r *envelope.Result) {
	if m := g.binding.Manifest; m == nil || m.ExecutionMode != envelope.Advisory {
		return
	}
	for _, action := range r.Output.Actions {
		if action.Status == "executed" {
			r.Review.Ask("advisory agent reported an executed action")
			return
		}
	}
}
