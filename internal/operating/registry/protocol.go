package registry

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/sign"
	"mailboxd/internal/operating/config"
)

// protocol returns what the engine asks about conversations. Agents may change at a
// SIGHUP; the limits are those of the start.
func (t *Registry) protocol(cfg config.Config) store.Protocol {
	return store.Protocol{
		Dialect:     func(id string) envelope.Dialect { return t.binding(id).Speaks() },
		Overseer:    func(id string) string { return t.definition(id).Overseer },
		StepReview:  func(asked envelope.Task) string { return t.current.Load().workflows.ReviewerOf(asked) },
		HasReviews:  func() bool { return t.current.Load().workflows.HasReviewers() },
		MayDelegate: t.mayDelegate,
		Rule:        func(from, to string) string { return t.definition(from).Rules[to] },
		Takers: func(taskType string, announced map[string][]string) []string {
			return t.current.Load().takers(taskType, announced)
		},
		Supports:   func(id string) []string { return t.current.Load().supports(id) },
		Agents:     func() []string { return t.current.Load().ids() },
		Secret:     func(name string) string { return t.current.Load().secrets[name] },
		Signatures: func() sign.Rules { return t.current.Load().signatures },
		Sign: func(line []byte) ([]byte, error) {
			by, err := t.Signer()
			if err != nil {
				return nil, err
			}
			return sign.Line(line, by)
		},
		OnFailure: func(id string, kind envelope.Kind) store.FailureAction {
			return mendOf(t.current.Load().agentConfig(id).Entry, kind)
		},
		AcceptsUnknown:  func() bool { return t.current.Load().acceptsUnknown },
		QuestionTimeout: func() time.Duration { return t.current.Load().questionTimeout },

		Rounds:       cfg.Oversight.Rounds,
		ReplyTimeout: cfg.Oversight.Patience,
		Broadcast:    cfg.Limits.Broadcast,
	}
}

// definition returns the CAP definition of an agent; zero without one.
func (t *Registry) definition(id string) dialect.Definition {
	if d := t.binding(id).Definition; d != nil {
		return *d
	}
	return dialect.Definition{}
}

// mayDelegate says why an agent may not delegate to another (CAP-19), or "". Lineage and
// policy limit an agent without a definition, and each agent may delegate to its
// overseer.
func (t *Registry) mayDelegate(from, to string) string {
	d := t.binding(from).Definition
	switch {
	case d == nil || to == d.Overseer || to != from && slices.Contains(d.AllowedAgents, to):
		return ""
	case to == from:
		return fmt.Sprintf("%s hands work to itself", from)
	}
	return fmt.Sprintf("%s is not among the allowed_agents of %s", to, from)
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
