package policy_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/policy"
	"mailboxd/internal/decisions/task"
)

// A breach is a task that breaks the rule of one control.
type breach struct {
	rule    string // the requirement
	control envelope.Control
	field   string                  // of the finding
	kind    envelope.Kind           // of the refusal; "" when the task is held or only warned about
	hold    task.Reason             // it waits for
	level   envelope.Level          // the enforcing component in mode enforce
	commit  func(*scene)            // makes the breach
	lax     func(task.Verdict) bool // a further check in the other modes; nil for none
}

// A scene has the arguments of Decide.
type scene struct {
	task  envelope.Task
	agent policy.Subject
	card  envelope.Manifest
	rules policy.Rules
}

var breaches = []breach{
	{rule: "AINL-13", control: envelope.ControlRole, field: "target_role", kind: envelope.RoleMismatch, level: envelope.LevelDaemon,
		commit: func(s *scene) { s.card.RoleTypes = []string{"advisor"} }},
	{rule: "AINL-35", control: envelope.ControlTaskType, field: "task_type", kind: envelope.UnsupportedTask, level: envelope.LevelDaemon,
		commit: func(s *scene) { s.agent.TaskTypes = []string{"look", "advisory_*"} }},
	{rule: "AINL-20", control: envelope.ControlContextSize, field: "input", kind: envelope.ContextTooLarge, level: envelope.LevelDaemon,
		commit: func(s *scene) { s.card.MaxContextSize, s.task.Input = 10, []byte(strings.Repeat(" ", 41)) }},
	{rule: "AINL-42", control: envelope.ControlOutputContract, field: "required_output_contract.schema_ref", level: envelope.LevelAdvisory,
		commit: func(s *scene) { s.task.Contract = &envelope.OutputContract{SchemaRef: "schema://nobody/knows/v9"} }},
	{rule: "AINL-44", control: envelope.ControlSensitivity, field: "sensitivity", kind: envelope.PolicyViolation, level: envelope.LevelDaemon,
		commit: func(s *scene) { s.task.Sensitivity, s.agent.MaxSensitivity = envelope.Confidential, envelope.Internal }},
	{rule: "AINL-19", control: envelope.ControlLocality, field: "sensitivity", kind: envelope.PolicyViolation, level: envelope.LevelDaemon,
		commit: func(s *scene) { s.task.Sensitivity, s.card.Locality = envelope.Confidential, envelope.Remote }},
	{rule: "AINL-45", control: envelope.ControlDeadline, field: "deadline", kind: envelope.DeadlineExceeded, level: envelope.LevelDaemon,
		commit: func(s *scene) { s.task.Deadline = noon },
		lax:    func(v task.Verdict) bool { return v.Deadline.IsZero() }},
	{rule: "AINL-46", control: envelope.ControlBudget, field: "budget_limit", kind: envelope.PolicyViolation, level: envelope.LevelAdvisory,
		commit: func(s *scene) {
			s.task.Budget, s.agent.Metered = envelope.Budget{Tokens: amount(3000)}, false
			s.rules.DayBudgets = []policy.DayBudget{{Requester: "*", Limit: envelope.Budget{Tokens: amount(1)}}}
		},
		lax: func(v task.Verdict) bool { return v.Budget == (envelope.Budget{}) && v.Accounts == nil }},
	{rule: "AINL-47", control: envelope.ControlTools, field: "allowed_tools", level: envelope.LevelAdvisory,
		commit: func(s *scene) { s.task.AllowedTools, s.card.AvailableTools = []string{"rm"}, []string{"ls"} }},
	{rule: "AINL-48", control: envelope.ControlApproval, field: "approval_required", hold: task.Approval, level: envelope.LevelDaemon,
		commit: func(s *scene) { s.task.Approval, s.task.HumanApprover = envelope.ApprovalPre, "sre" },
		lax:    func(v task.Verdict) bool { return v.Approval == "" && v.Approver == "" }},
	{rule: "AINL-17", control: envelope.ControlApproval, field: "approval_required", hold: task.Approval, level: envelope.LevelDaemon,
		commit: func(s *scene) { s.card.ApprovalByType = map[string]bool{"work": true} },
		lax:    func(v task.Verdict) bool { return v.Approval == "" }},
	{rule: "AINL-52", control: envelope.ControlEnvironment, field: "policy_context.environment", kind: envelope.PolicyViolation, level: envelope.LevelDaemon,
		commit: func(s *scene) { s.task.Environment, s.agent.Environments = "production", []string{"staging"} }},
	{rule: "AINL-52 not named", control: envelope.ControlEnvironment, field: "policy_context.environment", kind: envelope.PolicyViolation, level: envelope.LevelDaemon,
		commit: func(s *scene) { s.agent.Environments = []string{"staging"} }},
	{rule: "AINL-58 before", control: envelope.ControlChangeWindow, field: "policy_context.change_window", hold: task.ChangeWindow, level: envelope.LevelDaemon,
		commit: func(s *scene) { s.task.ChangeWindows = []envelope.Window{{Start: noon.Add(1), End: noon.Add(2)}} }},
	{rule: "AINL-58 after", control: envelope.ControlChangeWindow, field: "policy_context.change_window", kind: envelope.ChangeWindowMissed, level: envelope.LevelDaemon,
		commit: func(s *scene) { s.task.ChangeWindows = []envelope.Window{{Start: noon.Add(-time.Hour), End: noon}} }},
	{rule: "AINL-54", control: envelope.ControlNearMisses, field: "Deadline", kind: envelope.InvalidEnvelope, level: envelope.LevelDaemon,
		commit: func(s *scene) {
			s.task.NearMisses = envelope.Findings{{Kind: envelope.InvalidEnvelope, Field: "Deadline", Message: "unknown field"}}
		}},
	{rule: "AINL-60", control: envelope.ControlTrustDomain, field: "requester_id", kind: envelope.PolicyViolation, level: envelope.LevelDaemon,
		commit: func(s *scene) {
			s.card.TrustDomain, s.rules.Trust = "internal", []policy.Trust{{From: "external", To: "internal"}}
		}},
}

// decide commits the breach with its control in a mode.
func (b breach) decide(mode envelope.Mode) task.Verdict {
	s := scene{task: newTask(), agent: policy.Subject{MaxSensitivity: envelope.Restricted, Metered: true}}
	b.commit(&s)
	s.agent.Manifest = &s.card
	s.rules.Modes = map[envelope.Control]envelope.Mode{b.control: mode}
	return policy.Decide(s.task, &s.agent, s.rules, noon)
}

func TestEveryControlIsAsStrictAsItsMode(t *testing.T) {
	for _, b := range breaches {
		t.Run(b.rule+" "+string(b.control)+" enforce", func(t *testing.T) {
			v := b.decide(envelope.Enforce)
			waits := slices.Equal(v.Hold, []task.Reason{b.hold})
			if v.Admit != (b.kind == "") || v.Findings.Kind() != b.kind || waits != (b.hold != "") {
				t.Errorf("Decide = %+v; want kind %q, held for %q", v, b.kind, b.hold)
			}
			if b.hold == "" && !b.names(v.Findings) {
				t.Errorf("Decide finds %v; want one finding at %s", v.Findings, b.field)
			}
			if v.Levels[b.control] != b.level {
				t.Errorf("Decide = levels %v; want %s for %s", v.Levels, b.level, b.control)
			}
			if !v.Admit && (v.Hold != nil || !v.Deadline.IsZero() || v.Tools != nil || v.Budget != (envelope.Budget{})) {
				t.Errorf("Decide refuses with the terms %+v; want none but the levels", v)
			}
		})
		t.Run(b.rule+" "+string(b.control)+" warn", func(t *testing.T) {
			v := b.decide(envelope.Warn)
			if !v.Admit || len(v.Hold) > 0 || len(v.Findings.Warnings()) != 1 || !b.names(v.Findings) {
				t.Errorf("Decide = %+v; want it admitted with one warning at %s", v, b.field)
			}
			if v.Levels[b.control] != envelope.LevelAdvisory {
				t.Errorf("Decide = levels %v; want advisory for %s", v.Levels, b.control)
			}
			b.wantLax(t, v)
		})
		t.Run(b.rule+" "+string(b.control)+" off", func(t *testing.T) {
			v := b.decide(envelope.Off)
			if _, held := v.Levels[b.control]; !v.Admit || len(v.Hold) > 0 || len(v.Findings) > 0 || held {
				t.Errorf("Decide = %+v; want it admitted without a word", v)
			}
			b.wantLax(t, v)
		})
	}
}

func (b breach) names(found envelope.Findings) bool {
	return len(found) == 1 && found[0].Field == b.field
}

func (b breach) wantLax(t *testing.T, v task.Verdict) {
	t.Helper()
	if b.lax != nil && !b.lax(v) {
		t.Errorf("Decide = terms %+v; want nothing of a control that does not bind", v.Terms)
	}
}

// An approval after the run holds nothing yet.
func TestAnApprovalOfTheResultIsAsStrictAsItsMode(t *testing.T) {
	asks := newTask()
	asks.Approval, asks.HumanApprover = envelope.ApprovalPost, "sre"
	for mode, want := range map[envelope.Mode]struct {
		approval envelope.Approval
		approver string
		findings int
	}{
		envelope.Enforce: {envelope.ApprovalPost, "sre", 0}, envelope.Warn: {"", "", 1}, envelope.Off: {"", "", 0},
	} {
		rules := policy.Rules{Modes: map[envelope.Control]envelope.Mode{envelope.ControlApproval: mode}}
		v := policy.Decide(asks, &policy.Subject{}, rules, noon)
		if !v.Admit || len(v.Hold) > 0 || v.Approval != want.approval || v.Approver != want.approver || len(v.Findings) != want.findings {
			t.Errorf("AINL-48 mode %d: Decide(post) = %+v; want it admitted, with %+v", mode, v, want)
		}
	}
}

// Other components enforce the other controls, and their tests are there.
func TestEveryControlThatPolicyDecidesIsTriedInEveryMode(t *testing.T) {
	elsewhere := []envelope.Control{envelope.ControlRefs, envelope.ControlExecutionMode, envelope.ControlLineage}
	for _, c := range envelope.Controls() {
		tried := slices.ContainsFunc(breaches, func(b breach) bool { return b.control == c })
		if tried == slices.Contains(elsewhere, c) {
			t.Errorf("%s: tried here %v; want every control tried in one place", c, tried)
		}
	}
}

func TestWhatIsJudgedElsewhereIsStillSaidToBeHeld(t *testing.T) {
	asks := newTask()
	asks.Refs = []envelope.Ref{{Kind: "file", URI: "file://x"}}
	advisor := &policy.Subject{Manifest: &envelope.Manifest{ExecutionMode: envelope.Advisory}}
	v := policy.Decide(asks, advisor, policy.Rules{}, noon)
	if v.Levels[envelope.ControlRefs] != envelope.LevelDaemon || v.Levels[envelope.ControlExecutionMode] != envelope.LevelObserved {
		t.Errorf("Decide = levels %v; want refs by the daemon, execution_mode observed", v.Levels)
	}
}

func TestABudgetIsObservedOrOnlyToldTheAgent(t *testing.T) {
	asks := newTask()
	asks.Budget = envelope.Budget{Tokens: amount(1)}
	for want, agent := range map[envelope.Level]*policy.Subject{
		envelope.LevelObserved: {Metered: true}, envelope.LevelAdvisory: {AllowUnmetered: true},
	} {
		if v := policy.Decide(asks, agent, policy.Rules{}, noon); !v.Admit || v.Levels[envelope.ControlBudget] != want {
			t.Errorf("AINL-46: Decide(%+v) = %+v; want it admitted, the budget %s", agent, v, want)
		}
	}
}

// An agent that reports tokens without a price can be limited in tokens only.
func TestABudgetInCentsNeedsAnAgentThatSaysAPrice(t *testing.T) {
	tokens, cents := newTask(), newTask()
	tokens.Budget, cents.Budget = envelope.Budget{Tokens: amount(1)}, envelope.Budget{USDCents: amount(1)}
	day := policy.Rules{DayBudgets: []policy.DayBudget{{Agent: "*", Limit: envelope.Budget{USDCents: amount(1)}}}}
	unpriced := &policy.Subject{Metered: true, Unpriced: true}
	if v := policy.Decide(tokens, unpriced, policy.Rules{}, noon); !v.Admit || v.Levels[envelope.ControlBudget] != envelope.LevelObserved {
		t.Errorf("AINL-46: Decide(tokens) = %+v; want it admitted, the budget observed", v)
	}
	for name, v := range map[string]task.Verdict{
		"of the task": policy.Decide(cents, unpriced, policy.Rules{}, noon), "of the day": policy.Decide(tokens, unpriced, day, noon),
	} {
		if v.Admit || v.Findings.Kind() != envelope.PolicyViolation {
			t.Errorf("AINL-46: Decide(cents %s) = %+v; want policy_violation", name, v)
		}
	}
	unpriced.AllowUnmetered = true
	if v := policy.Decide(cents, unpriced, day, noon); !v.Admit || v.Levels[envelope.ControlBudget] != envelope.LevelAdvisory {
		t.Errorf("AINL-46: Decide(cents, allow_unmetered) = %+v; want it admitted, the budget advisory", v)
	}
}
