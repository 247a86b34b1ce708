package agent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/policy"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/brokered"
)

// A toolReport is the tool use that an answer reports: the tool of each action, and the
// list tools_used in the output or beside it. Unreported use is invisible.
type toolReport struct {
	names     []string // without duplicates, in order
	present   bool     // the answer has a report, though it may be empty
	malformed bool     // a part can't be read
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

// add adds a name, or a list of names; null is no tool.
func (t *toolReport) add(value jsontext.Value, kind jsontext.Kind) {
	t.present = true
	if value.Kind() == 'n' {
		return
	}
	if kind == '"' {
		value = slices.Concat([]byte{'['}, value, []byte{']'})
	}
	var names []string
	if err := json.Unmarshal(value, &names, lenient); err != nil {
		t.malformed = true
		return
	}
	for _, name := range names {
		if !slices.Contains(t.names, name) {
			t.names = append(t.names, name)
		}
	}
}

// checkTools checks the reported tools against those of the admission (AINL-14, AINL-47).
func (g *Agent) checkTools(j task.Job, r *envelope.Result) {
	if j.Tools == nil || g.mode(envelope.ControlTools) == envelope.Off {
		return
	}
	report := reportedTools(r)
	if report.malformed {
		r.Review.Ask("what the agent says of the tools it used cannot be read")
	}
	outside := slices.DeleteFunc(report.names, func(name string) bool { return slices.Contains(j.Tools, name) })
	if len(outside) > 0 {
		g.object(r, envelope.ControlTools, envelope.PolicyViolation, fmt.Sprintf("the agent used tools that it was not allowed to: %q", outside))
	}
}

// calledTools returns the tools that an agent calls, or whose results it reports, without
// duplicates (CLUTCH-33). It leaves out the calls that a tool broker makes, which decides about them.
func calledTools(tools brokered.Tools, messages []envelope.Message) (names []string) {
	for _, m := range messages {
		var name string
		if m.Act != envelope.Calls && m.Act != envelope.Returns && m.Act != envelope.FailsTool {
			continue
		}
		if _, brokered := tools.Asks(m); brokered {
			continue
		}
		if tool := member(m.Data, "tool"); tool.Kind() == '"' && json.Unmarshal(tool, &name, lenient) == nil && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// checkCalls checks the tools in an agent's messages against those of the admission. A server that
// is allowed may be called for each of its tools: mcp:browser allows mcp:browser/open (CLUTCH-61).
func (g *Agent) checkCalls(j task.Job, called []string, r *envelope.Result) {
	if j.Tools == nil || len(called) == 0 || g.mode(envelope.ControlTools) == envelope.Off {
		return
	}
	outside := slices.DeleteFunc(slices.Clone(called), func(name string) bool {
		server, _, _ := strings.Cut(name, "/")
		return policy.ListsTool(j.Tools, name) || slices.Contains(j.Tools, server)
	})
	if len(outside) > 0 {
		g.object(r, envelope.ControlTools, envelope.PolicyViolation, fmt.Sprintf("the agent called tools that it was not allowed to: %q", outside))
	}
}
