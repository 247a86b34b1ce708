package envelope

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// DecodeResult reads a complete AgentTaskResult that another program wrote, as strictly as
// AINL's own validator: schema_version, task_id, agent_id, status, and an output with its
// summary and actions are required. Odd but harmless values are read as DecodeAnswer reads
// them.
func DecodeResult(raw []byte) (Result, Findings) {
	return decode(raw, func(a *answer) {
		a.strict = true
		a.envelope()
	})
}

// DecodeAnswer reads the answer of an agent: an AgentTaskResult in which any member may be
// missing, or an output alone. A missing member is zero in the Result, so that the caller can
// fill it in. A value that makes no sense is kept or dropped with a warning, and Review then
// asks for a person (AINL-63 to AINL-70). Refusals are of the kind OutputInvalid.
func DecodeAnswer(raw []byte) (Result, Findings) {
	result, findings := decode(raw, func(a *answer) {
		if slices.ContainsFunc(envelopeMarks, func(mark string) bool { return a.has(mark) }) {
			a.envelope()
			return
		}
		a.result.Status = synonym(a.word(0, "status"))
		a.output(0)
		a.result.Output.Extra = a.others(0, outputFields...)
	})
	return result, attributeToAgent(findings)
}

// DecodeOutput reads an object as the output of a result, whatever its members are called.
// Refusals are of the kind OutputInvalid.
func DecodeOutput(raw []byte) (Output, Findings) {
	result, findings := decode(raw, func(a *answer) {
		a.output(0)
		a.result.Output.Extra = a.others(0, outputFields...)
	})
	return result.Output, attributeToAgent(findings)
}

// attributeToAgent changes the kind of the refusals to OutputInvalid: the agent wrote the text.
func attributeToAgent(findings Findings) Findings {
	for i := range findings {
		if !findings[i].Warning() {
			findings[i].Kind = OutputInvalid
		}
	}
	return findings
}

// An answer is a Result being read.
type answer struct {
	*check
	strict bool // the members of a complete result are required
	result Result
}

var (
	resultFields = []string{
		"schema_version", "task_id", "agent_id", "status", "confidence", "output",
		"artifact_refs", "cost_used", "time_used", "needs_review", "error", "provenance_ref",
	}
	outputFields = []string{"summary", "actions", "enforcement"}
	actionFields = []string{"kind", "description", "status"}

	// envelopeMarks distinguish a result from a bare output, which may have a status, a
	// confidence or an error of its own.
	envelopeMarks = []string{
		"schema_version", "task_id", "agent_id", "output",
		"artifact_refs", "cost_used", "time_used", "needs_review", "provenance_ref",
	}
)

func decode(raw []byte, read func(*answer)) (Result, Findings) {
	c := check{document: documents.Get().(*document)}
	defer c.release()
	a := answer{check: &c}
	if c.publishable(raw) {
		read(&a)
	}
	return a.result, c.findings
}

// publishable reports whether raw may be a result file: it is an object without duplicate
// names, and read_result can read all of it (AINL-73).
func (c *check) publishable(raw []byte) bool {
	if !c.parse(raw) {
		return false
	}
	c.contentHash() // finds duplicate names
	c.repeated()
	for at, n := range c.nodes {
		switch {
		case n.kind == '0' && n.end-n.start > mostDigits:
			c.refuse(at, "has more digits than Python can read")
		case n.kind == '{':
			for name := range c.members(at) {
				if _, tag := c.key(name); tag == halfPair {
					c.refuse(name, "contains half of a surrogate pair")
				}
			}
		}
	}
	return !c.findings.Refused()
}

// mostDigits is the length of the longest integer that Python reads.
const mostDigits = 4300

// envelope reads an AgentTaskResult.
func (a *answer) envelope() {
	r := &a.result
	a.review(a.member(0, "needs_review")) // first: the questions of the other members are added to it
	a.head()
	a.confidence(a.member(0, "confidence"))
	known := resultFields
	switch output := a.member(0, "output"); {
	case output == none && a.strict:
		a.missing(0, "output")
	case output == none: // the members of the output are at the top
		a.output(0)
		known = slices.Concat(known, outputFields)
	case a.is(output, '{'):
		a.output(output)
		r.Output.Extra = a.others(output, outputFields...)
	}
	a.artifacts(a.member(0, "artifact_refs"))
	a.cost(a.member(0, "cost_used"))
	a.time(a.member(0, "time_used"))
	a.error(a.member(0, "error"))
	a.provenance(a.member(0, "provenance_ref"))
	r.Extra = a.others(0, known...)
}

// want returns a member that is required in a complete result.
func (a *answer) want(object int, name string) int {
	if a.strict {
		return a.required(object, name)
	}
	return a.member(object, name)
}

// question warns about a value that makes no sense, and asks for a person.
func (a *answer) question(at int, message string) {
	a.warn(at, message)
	a.result.Review.Ask(a.findings[len(a.findings)-1].String())
}

// head reads the task, the agent and the status (AINL-61 to AINL-63).
func (a *answer) head() {
	r := &a.result
	switch version := a.want(0, "schema_version"); {
	case version == none:
	case !a.strict && a.word(0, "schema_version") == "0.1":
		a.warn(version, `is "0.1", the words of that version are translated`)
	case a.strict && !a.is(version, '"'):
	default:
		a.version(version)
	}
	if id := a.want(0, "task_id"); !a.strict || a.is(id, '"') {
		r.TaskID = a.id(id)
	}
	r.AgentID = a.name(a.want(0, "agent_id"))
	if status := a.want(0, "status"); a.is(status, '"') {
		r.Status = synonym(a.prose(status))
		if !r.Status.known() {
			a.question(status, "is "+quote(string(r.Status))+", which is no status we know")
		}
	}
}

// synonym translates the words that agents use for a status (AINL-63).
func synonym(word string) Status {
	switch word {
	case "success", "completed", "done":
		return OK
	case "failure", "failed":
		return Failed
	}
	return Status(word)
}

// Known returns the status if mailboxd writes it, and "other" for another word of an agent.
func (s Status) Known() Status {
	if s.known() {
		return s
	}
	return "other"
}

func (s Status) known() bool {
	return slices.Contains([]Status{OK, Failed, Partial, Stopped, Rejected}, s)
}

// output reads the summary, the actions and the enforcement (AINL-65, AINL-66).
func (a *answer) output(at int) {
	o := &a.result.Output
	o.Summary = a.prose(a.want(at, "summary"))
	a.enforcement(a.member(at, "enforcement"))
	actions := a.want(at, "actions")
	if !a.is(actions, '[') {
		return
	}
	for _, item := range a.items(actions) {
		if a.is(item, '{') {
			o.Actions = append(o.Actions, a.action(item))
		}
	}
}

// enforcement reads which component enforced each control. mailboxd alone knows, so the member
// is left out of the answer of an agent: no agent vouches for itself.
func (a *answer) enforcement(at int) {
	switch {
	case at == none:
		return
	case !a.strict:
		a.question(at, "is for mailboxd to say: left out")
		return
	case a.kind(at) != '{':
		a.warn(at, "should be an object: left out")
		return
	}
	levels := Levels{}
	for name, value := range a.members(at) {
		control, _ := a.text(name)
		if a.kind(value) == '"' {
			level, _ := a.text(value)
			levels[Control(control)] = Level(level)
			continue
		}
		a.warn(value, "should be a string: left out")
	}
	a.result.Output.Enforcement = levels
}

func (a *answer) action(at int) Action {
	status := a.want(at, "status")
	action := Action{
		Kind:        a.prose(a.want(at, "kind")),
		Description: a.prose(a.want(at, "description")),
		Status:      a.prose(status),
		Extra:       a.others(at, actionFields...),
	}
	switch {
	case slices.Contains([]string{"pending", "executed", "skipped"}, action.Status):
	case status == none:
		a.question(at, "does not say whether it was executed")
	default:
		a.question(status, "is "+quote(action.Status)+`, not "pending", "executed" or "skipped"`)
	}
	return action
}

// others returns the members of an object that are not among the known ones, as an object; nil
// if there are none.
func (c *check) others(object int, known ...string) jsontext.Value {
	var rest jsontext.Value
	for name, value := range c.members(object) {
		if slices.ContainsFunc(known, func(k string) bool { return c.says(name, k) }) {
			continue
		}
		rest = append(append(rest, ','), c.value(name)...)
		rest = append(append(rest, ':'), c.value(value)...)
	}
	if rest == nil {
		return nil
	}
	rest[0] = '{'
	return append(rest, '}')
}
