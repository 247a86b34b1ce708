package core_test

import (
	"strings"
	"testing"

	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

func TestWhoRequestedATaskDecidesAboutItAsTheRuleSays(t *testing.T) {
	for _, c := range []struct {
		rule      task.SelfRule
		requester string
		forbidden string
		needs     task.ProofLevel
	}{
		{task.SelfRefuse, "ann", "another approver must decide", task.ProofNone},
		{task.SelfRefuse, "Sre-OnCall", "another approver must decide", task.ProofNone},
		{task.SelfRefuse, "bob", "", task.ProofNone},
		{task.SelfRefuse, "", "", task.ProofNone},
		{task.SelfConfirm, "ann", "", task.ProofTerminal},
		{task.SelfConfirm, "bob", "", task.ProofNone},
		{task.SelfAllow, "ann", "", task.ProofNone},
	} {
		p := core.Person{Names: []string{"sre-oncall"}, User: "ann", Self: c.rule}
		row := task.Task{Requester: c.requester, Agent: "worker"}
		why, needs := p.Forbidden(row, ""), p.Needs(row)
		if (why == "") != (c.forbidden == "") || !strings.Contains(why, c.forbidden) || needs != c.needs {
			t.Errorf("%s, requested by %q: %q, needs %s; want %q, %s", c.rule, c.requester, why, needs, c.forbidden, c.needs)
		}
	}
	agent := core.Person{Names: []string{"worker"}, Self: task.SelfAllow}
	if agent.Forbidden(task.Task{Requester: "bob", Agent: "worker"}, "") == "" {
		t.Error("the agent of a task may decide about it; want it forbidden under every rule")
	}
}

// AINL-49: a person with several names decides under the name that is asked, unless the person chose another.
func TestOnlyTheApproverWhoIsAskedDecides(t *testing.T) {
	row := task.Task{Requester: "boss", Agent: "worker"}
	for _, c := range []struct {
		names        []string
		as, approver string
		allowed      bool
	}{
		{nil, "", "", false},
		{[]string{"ann", "sre"}, "", "", true},
		{[]string{"ann", "sre"}, "", "sre", true},
		{[]string{"ann", "sre"}, "sre", "sre", true},
		{[]string{"ann", "sre"}, "ann", "sre", false},
		{[]string{"ann"}, "", "sre", false},
	} {
		p := core.Person{Names: c.names, As: c.as, Self: task.SelfAllow}
		if why := p.Forbidden(row, c.approver); (why == "") != c.allowed {
			t.Errorf("%v as %q, and %q is asked: %q; want it allowed: %t", c.names, c.as, c.approver, why, c.allowed)
		}
	}
}
