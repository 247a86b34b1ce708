package policy

import (
	"path"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// Rules are the operator's settings. The zero value enforces the whole contract and adds
// nothing. Rules are immutable.
type Rules struct {
	Modes          map[envelope.Control]envelope.Mode // a missing control is enforced
	WindowExempt   []string                           // task types that need no change window, as path.Match patterns (F3)
	ContextDivisor int                                // bytes of input per token (AINL-20); 0: four
	Classes        []Class                            // the possible budget_class values of a manifest
	DayBudgets     []DayBudget
	Trust          []Trust                     // which requesters may use which agents: the first match decides, no match allows (AINL-60)
	Domains        map[string]string           // the trust domains of known agents, by id
	Approvers      []string                    // names of all approvers; nil: unknown
	Proofs         []Proof                     // the strictest row that matches decides
	KnowsSchema    func(schemaRef string) bool // nil: only the built-in schema is known (AINL-42)

	// UnknownStep returns the field with an unknown step of a workflow, and why it is unknown;
	// "" for none. Nil: steps are not checked (CLUTCH-42).
	UnknownStep func(t envelope.Task) (field, why string)

	// UnknownVersion returns the error for a schema version that the registry does not have; ""
	// if it has the version, or knows none of the schema. Nil: it knows none.
	UnknownVersion func(schemaRef string) string
}

// A Class limits each task of the agents whose manifests name it (AINL-18).
type Class struct {
	Name        string
	Budget      envelope.Budget
	Wall        time.Duration // of one run; 0: unlimited
	Concurrency int           // of each agent; 0: unlimited. Decide ignores it, because it isn't a property of one task
}

// A DayBudget limits the spending of a requester or an agent in a day. "*" applies to each
// name separately; a row with a name overrides "*".
type DayBudget struct {
	Requester string // only one of the two is set
	Agent     string
	Limit     envelope.Budget
}

// A Trust says whether requesters of one domain may use agents of another. Domains are
// path.Match patterns.
type Trust struct {
	From, To string
	Allow    bool
}

// A Proof says how approvals of some tasks must be proven at least. A row without task types
// or environments matches each. A task that names no environment could mean any, so it matches
// rows with environments too.
type Proof struct {
	TaskTypes    []string // path.Match patterns
	Environments []string
	Min          task.ProofLevel
}

func (p Proof) matches(t envelope.Task) bool {
	return (len(p.TaskTypes) == 0 || matches(t.Type, p.TaskTypes)) &&
		(len(p.Environments) == 0 || t.Environment == "" || slices.Contains(p.Environments, t.Environment))
}

// proofOf returns the least proof that an approval of a task needs.
func (r Rules) proofOf(t envelope.Task) (level task.ProofLevel) {
	for _, row := range r.Proofs {
		if row.matches(t) {
			level = max(level, row.Min)
		}
	}
	return level
}

// Class returns the class with a name; ok is false if there is none.
func (r Rules) Class(name string) (class Class, ok bool) {
	at := slices.IndexFunc(r.Classes, func(c Class) bool { return c.Name == name })
	if name == "" || at < 0 {
		return Class{}, false
	}
	return r.Classes[at], true
}

// matches reports whether a word matches one of the patterns. An invalid pattern matches
// nothing; the configuration check reports it.
func matches(word string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, word)
		return ok && err == nil
	})
}
