package envelope

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// DecodeResult reads a complete AgentTaskResult that somebody else wrote, as
// strictly as AINL's own validator: schema_version, task_id, agent_id, status,
// and an output with its summary and actions must be there. What is odd but
// harmless is read as DecodeAnswer reads it.
func DecodeResult(raw []byte) (Result, Findings) {
	return decode(raw, func(a *answer) {
		a.strict = true
		a.envelope()
	})
}

// DecodeAnswer reads what an agent said: an AgentTaskResult with anything
// missing, or nothing but its output. What was not said is zero, so that the
// caller can fill it in. Values that make no sense are kept or dropped with a
// warning, and Review then asks for a person (AINL-63 to AINL-70). Refusals
// are of the kind OutputInvalid.
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
	return result, blameAgent(findings)
}

// DecodeOutput reads an object that is the output of a result and nothing
// else, whatever its members are called. Refusals are of the kind
// OutputInvalid.
func DecodeOutput(raw []byte) (Output, Findings) {
	result, findings := decode(raw, func(a *answer) {
		a.output(0)
		a.result.Output.Extra = a.others(0, outputFields...)
	})
	return result.Output, blameAgent(findings)
}

// blameAgent turns complaints about an envelope into ones about an answer.
func blameAgent(findings Findings) Findings {
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
	strict bool // what a complete result has is required
	result Result
}

var (
	resultFields = []string{
		"schema_version", "task_id", "agent_id", "status", "confidence", "output",
		"artifact_refs", "cost_used", "time_used", "needs_review", "error", "provenance_ref",
	}
	outputFields = []string{"summary", "actions", "enforcement"}
	actionFields = []string{"kind", "description", "status"}

	// envelopeMarks tell a result from a bare output, which may well have a
	// status, a confidence or an error of its own.
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

// publishable reports whether raw may stand in a result file: it is an object
// that says nothing twice, and read_result can read all of it (AINL-73).
func (c *check) publishable(raw []byte) bool {
	if !c.parse(raw) {
		return false
	}
	c.contentHash() // finds what is said twice
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

// mostDigits is how long an integer may be for Python.
const mostDigits = 4300

// envelope reads an AgentTaskResult.
func (a *answer) envelope() {
	r := &a.result
	a.review(a.member(0, "needs_review")) // first: our own questions are added to it
	a.head()
	a.confidence(a.member(0, "confidence"))
	known := resultFields
	switch output := a.member(0, "output"); {
	case output == none && a.strict:
		a.missing(0, "output")
	case output == none: // laid out flat
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

// want returns a member that a complete result has.
func (a *answer) want(object int, name string) int {
	if a.strict {
		return a.required(object, name)
	}
	return a.member(object, name)
}

// question keeps or drops a value that makes no sense and asks for a person.
func (a *answer) question(at int, message string) {
	a.warn(at, message)
	a.result.Review.Ask(a.findings[len(a.findings)-1].String())
}

// head reads who says how which task ended (AINL-61 to AINL-63).
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

// synonym translates the words that agents use for how a task ended (AINL-63).
func synonym(word string) Status {
	switch word {
	case "success", "completed", "done":
		return OK
	case "failure", "failed":
		return Failed
	}
	return Status(word)
}

// Known returns a status that we write as it is, and "other" for a word of an agent.
func (s Status) Known() Status {
	if s.known() {
		return s
	}
	return "other"
}

func (s Status) known() bool {
	return slices.Contains([]Status{OK, Failed, Partial, Stopped, Rejected}, s)
}

// output reads what was found out and done (AINL-65, AINL-66).
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

// enforcement reads who held which control. An agent cannot know, so it is
// left out of what an agent says: nobody vouches for himself.
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

// others returns the members of an object that are not known, as an object of
// its own; nil when there are none.
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
