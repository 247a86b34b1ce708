package config

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/policy"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/sandboxing/sandbox"
)

// Policy is the section of the rules.
type Policy struct {
	Modes          map[string]any `mapstructure:",remain"` // by the name of each control but change_window
	ChangeWindow   ChangeWindow   `mapstructure:"change_window"`
	ContextDivisor int            `mapstructure:"context_divisor"`
	BudgetClasses  []BudgetClass  `mapstructure:"budget_classes"`
	Budgets        []Budget       `mapstructure:"budgets"`
	Trust          []Trust        `mapstructure:"trust"`
	ApprovalTTL    time.Duration  `mapstructure:"approval_ttl"`
	Proof          []ProofRule    `mapstructure:"proof"`
	Schemas        string         `mapstructure:"schemas"`
	SchemasPinned  bool           `mapstructure:"schemas_pinned"`
	Egress         Egress         `mapstructure:"egress"`
}

// Egress lists the hosts that may see what is of a sensitivity.
type Egress struct {
	Public       []string `mapstructure:"public"`
	Internal     []string `mapstructure:"internal"`
	Confidential []string `mapstructure:"confidential"`
	Restricted   []string `mapstructure:"restricted"`
}

func (e Egress) settings() sandbox.Egress {
	return sandbox.Egress{Public: e.Public, Internal: e.Internal, Confidential: e.Confidential, Restricted: e.Restricted}
}

func (e Egress) check() (checks []error) {
	for name, hosts := range map[string][]string{"public": e.Public, "internal": e.Internal, "confidential": e.Confidential, "restricted": e.Restricted} {
		for i, entry := range hosts {
			if err := sandbox.CheckHost(entry); err != nil {
				checks = append(checks, wrong(fmt.Sprintf("policy.egress.%s[%d]", name, i), "%v", err))
			}
		}
	}
	return checks
}

// ChangeWindow is how change windows are enforced.
type ChangeWindow struct {
	Mode            string   `mapstructure:"mode"`
	ExemptTaskTypes []string `mapstructure:"exempt_task_types"`
}

// A BudgetClass limits the agents whose manifests name it.
type BudgetClass struct {
	Name        string        `mapstructure:"name"`
	Tokens      *int64        `mapstructure:"tokens"`
	USDCents    *int64        `mapstructure:"usd_cents"`
	Wall        time.Duration `mapstructure:"wall"`
	Concurrency int           `mapstructure:"concurrency"`
}

// A Budget limits a requester or an agent per day.
type Budget struct {
	Requester string `mapstructure:"requester"`
	Agent     string `mapstructure:"agent"`
	Per       string `mapstructure:"per"`
	Tokens    *int64 `mapstructure:"tokens"`
	USDCents  *int64 `mapstructure:"usd_cents"`
}

// A Trust denies or allows tasks between two trust domains.
type Trust struct {
	From  string `mapstructure:"from"`
	To    string `mapstructure:"to"`
	Allow bool   `mapstructure:"allow"`
}

// A ProofRule is the least proof that approvals of some tasks need.
type ProofRule struct {
	TaskTypes    []string `mapstructure:"task_types"`
	Environments []string `mapstructure:"environments"`
	Min          string   `mapstructure:"min"`
}

// check refuses a rule without a meaning.
func (p ProofRule) check(key string) []error {
	return []error{choice(key+".min", p.Min), patterns(key+".task_types", p.TaskTypes)}
}

// modes are the words of the configuration for how strict a control is.
var modes = map[string]envelope.Mode{"enforce": envelope.Enforce, "warn": envelope.Warn, "off": envelope.Off}

// scalarControls are the controls whose key is their mode; that of the change
// window is a section.
func scalarControls() []envelope.Control {
	return slices.DeleteFunc(envelope.Controls(), func(c envelope.Control) bool { return c == envelope.ControlChangeWindow })
}

// Rules converts the section to the rules of package policy, without the domains of
// the agents.
func (p *Policy) Rules() policy.Rules {
	r := policy.Rules{
		Modes:          map[envelope.Control]envelope.Mode{envelope.ControlChangeWindow: modes[p.ChangeWindow.Mode]},
		WindowExempt:   p.ChangeWindow.ExemptTaskTypes,
		ContextDivisor: p.ContextDivisor,
	}
	for _, control := range scalarControls() {
		word, _ := p.Modes[string(control)].(string) // check has seen to it
		r.Modes[control] = modes[word]
	}
	for _, c := range p.BudgetClasses {
		limit := envelope.Budget{Tokens: c.Tokens, USDCents: c.USDCents}
		r.Classes = append(r.Classes, policy.Class{Name: c.Name, Budget: limit, Wall: c.Wall, Concurrency: c.Concurrency})
	}
	for _, b := range p.Budgets {
		limit := envelope.Budget{Tokens: b.Tokens, USDCents: b.USDCents}
		r.DayBudgets = append(r.DayBudgets, policy.DayBudget{Requester: b.Requester, Agent: b.Agent, Limit: limit})
	}
	for _, row := range p.Trust {
		r.Trust = append(r.Trust, policy.Trust(row))
	}
	for _, row := range p.Proof {
		level, _ := task.ParseProofLevel(row.Min) // check has seen to it
		r.Proofs = append(r.Proofs, policy.Proof{TaskTypes: row.TaskTypes, Environments: row.Environments, Min: level})
	}
	return r
}

// nearMisses is how strictly fields are refused that are nearly controls.
func (p *Policy) nearMisses() envelope.Mode {
	word, _ := p.Modes[string(envelope.ControlNearMisses)].(string)
	return modes[word]
}

// check refuses rules that have no or a misleading meaning.
func (p *Policy) check(agents []Entry) []error {
	var checks []error
	for _, control := range scalarControls() {
		checks = append(checks, choice("policy."+string(control), fmt.Sprint(p.Modes[string(control)])))
	}
	checks = append(checks,
		choice("policy.change_window.mode", p.ChangeWindow.Mode),
		patterns("policy.change_window.exempt_task_types", p.ChangeWindow.ExemptTaskTypes),
		atLeast("policy.context_divisor", int64(p.ContextDivisor), 1),
	)
	for i, row := range p.Trust {
		key := fmt.Sprintf("policy.trust[%d]", i)
		if row.From == "" || row.To == "" {
			checks = append(checks, wrong(key, "needs from and to, each a trust domain or \"*\""))
		}
		checks = append(checks, pattern(key+".from", row.From), pattern(key+".to", row.To))
	}
	checks = append(checks, p.Egress.check()...)
	for i, row := range p.Proof {
		checks = append(checks, row.check(fmt.Sprintf("policy.proof[%d]", i))...)
	}
	return append(checks, p.checkBudgets(agents)...)
}

func (p *Policy) checkBudgets(agents []Entry) []error {
	var checks []error
	for i, class := range p.BudgetClasses {
		key := fmt.Sprintf("policy.budget_classes[%d]", i)
		same := func(c BudgetClass) bool { return c.Name == class.Name }
		if class.Name == "" || slices.IndexFunc(p.BudgetClasses, same) != i {
			checks = append(checks, wrong(key+".name", "%q is missing or there twice", class.Name))
		}
		checks = append(checks, amounts(key, class.Tokens, class.USDCents),
			atLeast(key+".wall", int64(class.Wall), 0), atLeast(key+".concurrency", int64(class.Concurrency), 0))
	}
	for i, budget := range p.Budgets {
		key := fmt.Sprintf("policy.budgets[%d]", i)
		same := func(b Budget) bool { return b.Requester == budget.Requester && b.Agent == budget.Agent }
		if slices.IndexFunc(p.Budgets, same) != i {
			checks = append(checks, wrong(key, "is for %q, as another is", budget.Requester+budget.Agent))
		}
		checks = append(checks, budget.check(key, agents))
	}
	return checks
}

// check refuses a budget without an owner or limit, and one of an unknown agent.
func (b Budget) check(key string, agents []Entry) error {
	known := slices.ContainsFunc(agents, func(e Entry) bool { return e.ID == b.Agent })
	switch {
	case (b.Requester == "") == (b.Agent == ""):
		return wrong(key, "needs requester or agent, one of them")
	case b.Agent != "" && b.Agent != "*" && !known:
		return wrong(key+".agent", "no agent %q is configured", b.Agent)
	case b.Tokens == nil && b.USDCents == nil:
		return wrong(key, "needs tokens or usd_cents")
	}
	return errors.Join(choice(key+".per", b.Per), amounts(key, b.Tokens, b.USDCents))
}

func amounts(key string, tokens, cents *int64) error {
	var checks []error
	for name, amount := range map[string]*int64{"tokens": tokens, "usd_cents": cents} {
		if amount != nil {
			checks = append(checks, atLeast(key+"."+name, *amount, 0))
		}
	}
	return errors.Join(checks...)
}
