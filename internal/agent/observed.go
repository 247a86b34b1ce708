package agent

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/task"
)

// A toolReport is what an answer says of the tools that were used: the tool of
// each action, and the list tools_used in the output or beside it. What an
// agent does not report, nobody here sees.
type toolReport struct {
	names []string // each once, in the order they are met
	given bool     // there is one, though it may be of no tool
	odd   bool     // something in it cannot be read
}

// reportedTools reads the tool report of an answer (AINL-47).
func reportedTools(r *envelope.Result) toolReport {
	var report toolReport
	for _, action := range r.Output.Actions {
		if tool := member(action.Extra, "tool"); tool != nil {
			report.add(tool, '"')
		}
	}
	for _, extra := range []jsontext.Value{r.Output.Extra, r.Extra} {
		if used := member(extra, "tools_used"); used != nil {
			report.add(used, '[')
		}
	}
	return report
}

// add takes a name, or a list of names; null is no tool.
func (t *toolReport) add(said jsontext.Value, kind jsontext.Kind) {
	t.given = true
	if said.Kind() == 'n' {
		return
	}
	if kind == '"' {
		said = slices.Concat([]byte{'['}, said, []byte{']'})
	}
	var names []string
	if err := json.Unmarshal(said, &names, lenient); err != nil {
		t.odd = true
		return
	}
	for _, name := range names {
		if !slices.Contains(t.names, name) {
			t.names = append(t.names, name)
		}
	}
}

// keepTools holds the tools that were used, as far as the agent says, against
// those that the task was admitted with (AINL-14, AINL-47).
func (g *Agent) keepTools(j task.Job, r *envelope.Result) {
	if j.Tools == nil || g.mode(envelope.ControlTools) == envelope.Off {
		return
	}
	report := reportedTools(r)
	if report.odd {
		r.Review.Ask("what the agent says of the tools it used cannot be read")
	}
	outside := slices.DeleteFunc(report.names, func(name string) bool { return slices.Contains(j.Tools, name) })
	if len(outside) > 0 {
		g.object(r, envelope.ControlTools, envelope.PolicyViolation, fmt.Sprintf("the agent used tools that it was not allowed to: %q", outside))
	}
}
