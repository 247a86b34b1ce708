package main

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/config"
)

// protocol is how the engine learns how agents are spoken with. What a SIGHUP
// changes, it asks anew each time; the numbers stay those of the start.
func (t *team) protocol(cfg config.Config) store.Protocol {
	return store.Protocol{
		Dialect:     func(id string) envelope.Dialect { return t.binding(id).Speaks() },
		Overseer:    func(id string) string { return t.definition(id).Overseer },
		MayDelegate: t.mayDelegate,
		Rule:        func(from, to string) string { return t.definition(from).Rules[to] },
		Takers: func(taskType string, announced map[string][]string) []string {
			return t.current.Load().takers(taskType, announced)
		},
		Supports: func(id string) []string { return t.current.Load().supports(id) },
		Agents:   func() []string { return t.current.Load().ids() },
		Secret:   func(name string) string { return t.current.Load().secrets[name] },
		OnFailure: func(id string, kind envelope.Kind) store.FailureAction {
			return mendOf(t.current.Load().member(id).Entry, kind)
		},
		QuestionTimeout: func() time.Duration { return t.current.Load().questionTimeout },

		Rounds:       cfg.Oversight.Rounds,
		ReplyTimeout: cfg.Oversight.Patience,
		Broadcast:    cfg.Limits.Broadcast,
	}
}

// definition is what CAP says of an agent; the zero Definition when it has none.
func (t *team) definition(id string) dialect.Definition {
	if d := t.binding(id).Definition; d != nil {
		return *d
	}
	return dialect.Definition{}
}

// mayDelegate says why an agent may not hand work to another (CAP-19). One
// without a definition may, as far as lineage and policy let it, and everybody
// may hand their own overseer what they did.
func (t *team) mayDelegate(from, to string) string {
	d := t.binding(from).Definition
	switch {
	case d == nil || to == d.Overseer || to != from && slices.Contains(d.AllowedAgents, to):
		return ""
	case to == from:
		return fmt.Sprintf("%s hands work to itself", from)
	}
	return fmt.Sprintf("%s is not among the allowed_agents of %s", to, from)
}

// takers lists the agents that take a type of work, sorted: by what they have
// announced, or by their entry where they have announced nothing (CLOWL-09).
func (r *roster) takers(taskType string, announced map[string][]string) []string {
	return slices.DeleteFunc(r.ids(), func(id string) bool {
		patterns := r.member(id).Subject.TaskTypes
		fits := len(patterns) == 0 || slices.ContainsFunc(patterns, func(pattern string) bool {
			ok, _ := path.Match(pattern, taskType)
			return ok || supported(pattern, taskType)
		})
		if supports, said := announced[id]; said {
			fits = fits && slices.ContainsFunc(supports, func(item string) bool { return supported(item, taskType) })
		}
		return !fits
	})
}

// supported reports whether an item that an agent announces is about a type of
// work: search and search:web are about search, and * is about all (CLOWL-29).
func supported(item, taskType string) bool {
	return item == "*" || item == taskType || strings.HasPrefix(item, taskType+":")
}

// supports is what an agent takes, as others are told of it.
func (r *roster) supports(id string) []string {
	if _, known := r.agents.Lookup(id); !known {
		return nil
	}
	if types := r.member(id).Subject.TaskTypes; len(types) > 0 {
		return slices.Clone(types)
	}
	return []string{"*"}
}

// mendOf returns what the configuration of an agent says to do about an error.
func mendOf(e config.Entry, kind envelope.Kind) store.FailureAction {
	rule, ok := e.RuleFor(kind)
	switch {
	case !ok:
		return store.FailureAction{}
	case rule.Do == "retry":
		return store.FailureAction{Retry: true}
	case rule.Do == "reassign":
		return store.FailureAction{Reassign: rule.To}
	}
	return store.FailureAction{Escalate: cmp.Or(rule.To, "user")}
}
