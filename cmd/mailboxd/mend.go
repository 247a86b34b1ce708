package main

import (
	"cmp"
	"fmt"
	"slices"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
)

// An errorRule says what to do about work of an agent that failed (CAP-32).
type errorRule struct {
	Codes []string `mapstructure:"codes"` // of CAP or CLowl, or kinds: 504, E006, timeout
	Do    string   `mapstructure:"do"`
	To    string   `mapstructure:"to"`
}

func (r errorRule) check(key, id string) error {
	if len(r.Codes) == 0 {
		return fmt.Errorf("%s.codes: required, a list such as [504, E006, timeout]", key)
	}
	for i, code := range r.Codes {
		if dialect.KindsOf(code) == nil {
			return fmt.Errorf("%s.codes[%d]: %q is no code of CAP or CLowl, and no kind of error", key, i, code)
		}
	}
	switch {
	case r.Do == "reassign" && r.To == "":
		return fmt.Errorf("%s.to: required, the agent that shall do it instead", key)
	case r.Do == "reassign" && r.To == id:
		return fmt.Errorf("%s.to: is the agent itself", key)
	case r.Do == "retry" && r.To != "":
		return fmt.Errorf("%s.to: is for reassign and escalate", key)
	}
	return oneOf(key+".do", r.Do, "retry", "reassign", "escalate")
}

// covers reports whether the rule is about a kind of error.
func (r errorRule) covers(kind envelope.Kind) bool {
	return slices.ContainsFunc(r.Codes, func(code string) bool { return slices.Contains(dialect.KindsOf(code), kind) })
}

// mend is what to do about an error of a kind: what the first rule says that is
// about it.
func (e agentEntry) mend(kind envelope.Kind) store.FailureAction {
	at := slices.IndexFunc(e.OnError, func(r errorRule) bool { return r.covers(kind) })
	if at < 0 {
		return store.FailureAction{}
	}
	switch rule := e.OnError[at]; rule.Do {
	case "retry":
		return store.FailureAction{Retry: true}
	case "reassign":
		return store.FailureAction{Reassign: rule.To}
	default:
		return store.FailureAction{Escalate: cmp.Or(rule.To, "user")}
	}
}
