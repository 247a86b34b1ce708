package policy_test

import (
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/policy"
	"mailboxd/internal/decisions/task"
)

// An answer may be in review while its task would be refused.
func TestARefusedTaskStillNeedsItsProof(t *testing.T) {
	rules := policy.Rules{Proofs: []policy.Proof{{Min: task.ProofKey}}}
	asked := envelope.Task{Type: "deploy", Approval: envelope.ApprovalPost, Role: "executor", Deadline: time.Unix(1, 0)}
	for name, agent := range map[string]*policy.Subject{"a removed agent": nil, "a disabled agent": {Unfit: "x"}, "a past deadline": {}} {
		if v := policy.Decide(asked, agent, rules, time.Now()); v.Admit || v.Proof != task.ProofKey {
			t.Errorf("%s: admitted %v with proof %s; want a refusal with proof ssh", name, v.Admit, v.Proof)
		}
	}
}

func TestTheStrictestRowOfProofThatMatchesDecides(t *testing.T) {
	rules := policy.Rules{Proofs: []policy.Proof{
		{Min: task.ProofTerminal, TaskTypes: []string{"deploy*"}},
		{Min: task.ProofPerson, TaskTypes: []string{"deploy*"}, Environments: []string{"prod"}},
		{Min: task.ProofKey, Environments: []string{"prod"}},
	}}
	for _, c := range []struct {
		kind, environment string
		want              task.ProofLevel
	}{
		{"look", "dev", task.ProofNone}, {"look", "prod", task.ProofKey}, {"look", "", task.ProofKey}, // "" could mean any
		{"deploy_app", "dev", task.ProofTerminal}, {"deploy_app", "prod", task.ProofPerson},
	} {
		asked := envelope.Task{Type: c.kind, Environment: c.environment, Approval: envelope.ApprovalPre, Role: "executor"}
		if v := policy.Decide(asked, &policy.Subject{}, rules, time.Now()); v.Proof != c.want {
			t.Errorf("%s in %q needs proof %s; want %s", c.kind, c.environment, v.Proof, c.want)
		}
	}
}
