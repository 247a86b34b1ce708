package policy

import (
	"path"
	"slices"
	"time"

	"mailboxd/envelope"
)

// Rules are the operator's choices. The zero value enforces everything that
// the contract says, and adds nothing to it. Rules are never changed.
type Rules struct {
	Modes          map[envelope.Control]envelope.Mode // a control that is not in it is enforced
	WindowExempt   []string                           // task types without a change window, as path.Match patterns (F3)
	ContextDivisor int                                // bytes of input that count as a token (AINL-20); 0: four
	Classes        []Class                            // what a manifest's budget_class can name
	DayBudgets     []DayBudget
	Trust          []Trust                     // who may ask whom: the first that matches counts, and none allows (AINL-60)
	Domains        map[string]string           // the trust domains of the agents we know, by their ids
	Approvers      []string                    // who may approve anything; nil: not known
	KnowsSchema    func(schemaRef string) bool // nil: only the built-in schema is known (AINL-42)
}

// A Class caps each task of the agents whose manifests name it (AINL-18).
type Class struct {
	Name        string
	Budget      envelope.Budget
	Wall        time.Duration // of one run; 0: no cap
	Concurrency int           // of each agent; 0: no cap. Not for Decide: it is no property of one task
}

// A DayBudget is what may be spent in a day for one requester, or by one
// agent. "*" is each of them by itself, not all together; a row that names
// one takes the place of "*" for it.
type DayBudget struct {
	Requester string // one of the two
	Agent     string
	Limit     envelope.Budget
}

// A Trust says whether requesters of one domain may ask agents of another.
// Domains are path.Match patterns.
type Trust struct {
	From, To string
	Allow    bool
}

// Class returns the named class; ok is false when there is none.
func (r Rules) Class(name string) (class Class, ok bool) {
	at := slices.IndexFunc(r.Classes, func(c Class) bool { return c.Name == name })
	if name == "" || at < 0 {
		return Class{}, false
	}
	return r.Classes[at], true
}

// matches reports whether a word matches one of the patterns. They were
// checked when the configuration was read; a broken one matches nothing.
func matches(word string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, word)
		return ok && err == nil
	})
}
