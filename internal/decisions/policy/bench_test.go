package policy_test

import (
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/policy"
)

// BenchmarkDecide judges a task that asks for little, and one that comes under
// most controls, with each of them in force.
func BenchmarkDecide(b *testing.B) {
	strict := newTask()
	strict.Budget = envelope.Budget{Tokens: amount(500), USDCents: amount(3)}
	strict.Deadline = noon.Add(time.Hour)
	strict.Environment = "prod"
	manifest := &envelope.Manifest{RoleTypes: []string{"executor"}, BudgetClass: "low"}
	rules := policy.Rules{Classes: []policy.Class{{Name: "low", Budget: envelope.Budget{Tokens: amount(900)}}}}
	for name, c := range map[string]struct {
		task  envelope.Task
		agent policy.Subject
	}{
		"plain":  {newTask(), policy.Subject{Manifest: &envelope.Manifest{}}},
		"strict": {strict, policy.Subject{Manifest: manifest, Metered: true, Environments: []string{"prod"}, TaskTypes: []string{"wor*"}}},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if v := policy.Decide(c.task, &c.agent, rules, noon); !v.Admit {
					b.Fatalf("Decide = %+v; want it admitted", v)
				}
			}
		})
	}
}
