package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/policy"
	"mailboxd/internal/decisions/task"
)

var noon = time.Date(2026, 3, 9, 12, 0, 0, 0, time.UTC)

func newTask() envelope.Task {
	return envelope.Task{ID: "t1", Requester: "me", Agent: "a", Role: "executor", Type: "work"}
}

func amount(n int64) *int64 { return &n }

// AINL-18: a class that only warns sets an expected budget.
func TestABudgetThatOnlyWarnsIsExpectedToBeKept(t *testing.T) {
	asks, class := newTask(), policy.Class{Name: "low", Budget: envelope.Budget{Tokens: amount(500)}}
	asks.Budget = envelope.Budget{Tokens: amount(900), USDCents: amount(3)}
	agent := &policy.Subject{Manifest: &envelope.Manifest{BudgetClass: "low"}, Metered: true}
	for mode, want := range map[envelope.Mode]envelope.Budget{
		envelope.Enforce: {}, envelope.Warn: {Tokens: amount(500), USDCents: amount(3)}, envelope.Off: {},
	} {
		rules := policy.Rules{Classes: []policy.Class{class}, Modes: map[envelope.Control]envelope.Mode{envelope.ControlBudget: mode}}
		if v := policy.Decide(asks, agent, rules, noon); !cmp.Equal(v.Expected, want) {
			t.Errorf("mode %d: Decide = expected %+v; want %+v", mode, v.Expected, want)
		}
	}
}

// AINL-49: a warning tells that the named approver does not exist here.
func TestAnApproverWhomNobodyIsIsWarnedOf(t *testing.T) {
	for approver, warned := range map[string]string{
		"": "", "ada": "", "carol": `human_approver: "carol" is not in approvers`, "tester": `human_approver: "tester" is the requester`,
	} {
		asks := newTask()
		asks.Requester, asks.Approval, asks.HumanApprover = "tester", envelope.ApprovalPre, approver
		v := policy.Decide(asks, &policy.Subject{}, policy.Rules{Approvers: []string{"ada", "tester"}}, noon)
		if got := v.Findings.Warnings().String(); !v.Admit || (got == "") != (warned == "") || !strings.HasPrefix(got, warned) {
			t.Errorf("Decide(approver %q) warns %q; want %q", approver, got, warned)
		}
	}
}

func TestTheZeroVerdictRefuses(t *testing.T) {
	if (task.Verdict{}).Admit {
		t.Error("a zero Verdict admits")
	}
}

func TestAnAgentThatCannotBeAskedIsRefusedByName(t *testing.T) {
	for _, agent := range []*policy.Subject{nil, {Unfit: "its manifest has no agent_id"}} {
		v := policy.Decide(newTask(), agent, policy.Rules{}, noon)
		if v.Admit || v.Findings.Kind() != envelope.UnknownAgent || v.Findings[0].Field != "target_agent" {
			t.Errorf("AINL-10: Decide(%+v) = %+v; want unknown_agent at target_agent", agent, v)
		}
	}
}

func TestAnAgentWithoutListsTakesWhatComes(t *testing.T) {
	anybody := &policy.Subject{Manifest: &envelope.Manifest{}}
	for _, s := range []*policy.Subject{anybody, {}} {
		if v := policy.Decide(newTask(), s, policy.Rules{}, noon); !v.Admit || len(v.Findings) > 0 {
			t.Errorf("Decide(nothing listed) = %+v; want it admitted", v)
		}
	}
}

func TestADeadlineEndsWhatIsAdmittedBeforeIt(t *testing.T) {
	late := newTask()
	late.Deadline = noon
	if v := policy.Decide(late, &policy.Subject{}, policy.Rules{}, noon.Add(-time.Second)); !v.Admit || !v.Deadline.Equal(noon) {
		t.Errorf("AINL-45: Decide(before its deadline) = %+v; want it admitted until the deadline", v)
	}
}

func TestToolsAreTheOnesAllSidesAllow(t *testing.T) {
	manifest := &envelope.Manifest{AvailableTools: []string{"http", "queue"}}
	for _, c := range []struct {
		name          string
		agent         policy.Subject
		asked, want   []string
		wantsAWarning bool
	}{
		{"both", policy.Subject{Manifest: manifest}, []string{"queue", "cache"}, []string{"queue"}, true},
		{"none asked for", policy.Subject{Manifest: manifest}, []string{}, []string{}, false},
		{"not given", policy.Subject{Manifest: manifest}, nil, []string{"http", "queue"}, false},
		{"no manifest", policy.Subject{}, []string{"x"}, []string{"x"}, false},
		{"granted less", policy.Subject{Manifest: manifest, Tools: []string{"http", "shell"}}, nil, []string{"http"}, false},
		{"granted none", policy.Subject{Manifest: manifest, Tools: []string{}}, []string{"http"}, []string{}, true},
		{"only granted", policy.Subject{Tools: []string{"http"}}, nil, []string{"http"}, false},
		{"nobody said", policy.Subject{}, nil, nil, false},
	} {
		asks := newTask()
		asks.AllowedTools = c.asked
		v := policy.Decide(asks, &c.agent, policy.Rules{}, noon)
		if !v.Admit || !slices.Equal(v.Tools, c.want) || (v.Tools == nil) != (c.want == nil) || (len(v.Findings) > 0) != c.wantsAWarning {
			t.Errorf("AINL-47 %s: Decide = %+v; want tools %q", c.name, v, c.want)
		}
	}
}

// The message names the first ten tools that are missing.
func TestTheWarningOfMissingToolsNamesTen(t *testing.T) {
	asks := newTask()
	for n, want := range []string{
		9:  `"t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9"`,
		10: `"t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9" and 1 more`,
		11: `"t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9" and 2 more`,
	} {
		asks.AllowedTools = append(asks.AllowedTools, fmt.Sprint("t", n))
		if want == "" {
			continue
		}
		v := policy.Decide(asks, &policy.Subject{Tools: []string{"http"}}, policy.Rules{}, noon)
		if got := v.Findings.String(); !strings.HasSuffix(got, "does not have "+want) {
			t.Errorf("AINL-47: %d tools are missing: %q; want the end %q", n+1, got, want)
		}
	}
}

func TestAnInputThatJustFitsIsAdmitted(t *testing.T) {
	for _, c := range []struct {
		bytes, divisor int
		refused        string // "" if it is admitted
	}{
		{bytes: 40}, {bytes: 37}, {bytes: 41, refused: "is about 11 tokens (41 bytes)"}, {bytes: 45, refused: "is about 12 tokens (45 bytes)"},
		{bytes: 20, divisor: 2}, {bytes: 21, divisor: 2, refused: "is about 11 tokens (21 bytes)"},
		{bytes: 10, divisor: 1}, {bytes: 40, divisor: -1},
	} {
		asks := newTask()
		asks.Input = []byte(strings.Repeat(" ", c.bytes))
		v := policy.Decide(asks, &policy.Subject{Manifest: &envelope.Manifest{MaxContextSize: 10}}, policy.Rules{ContextDivisor: c.divisor}, noon)
		if v.Admit != (c.refused == "") || !strings.Contains(v.Findings.String(), c.refused) {
			t.Errorf("AINL-20: %d bytes, %d a token: %q; want %q", c.bytes, c.divisor, v.Findings, c.refused)
		}
	}
}

func TestTheRefusalOfAnEnvironmentSaysWhetherItIsMissing(t *testing.T) {
	for environment, want := range map[string]string{
		"": "is missing", "production": `does not work in "production"`, "staging": "",
	} {
		asks := newTask()
		asks.Environment = environment
		v := policy.Decide(asks, &policy.Subject{Environments: []string{"staging"}}, policy.Rules{}, noon)
		if v.Admit != (want == "") || !strings.Contains(v.Findings.String(), want) {
			t.Errorf("AINL-52: environment %q: %q; want %q", environment, v.Findings, want)
		}
	}
}

func TestTheBuiltInSchemaIsKnownWithoutAFile(t *testing.T) {
	for ref, want := range map[string]envelope.Level{
		"schema://ainl/agent-output/v1": envelope.LevelDaemon, "schema://ainl/agent-output/v2": envelope.LevelAdvisory, "": envelope.LevelDaemon,
	} {
		asks := newTask()
		asks.Contract = &envelope.OutputContract{SchemaRef: ref}
		v := policy.Decide(asks, &policy.Subject{}, policy.Rules{}, noon)
		if got := v.Levels[envelope.ControlOutputContract]; got != want || (len(v.Findings) > 0) != (want == envelope.LevelAdvisory) {
			t.Errorf("AINL-42: schema_ref %q: level %q, findings %q; want %q", ref, got, v.Findings, want)
		}
	}
}

func TestTheStricterApprovalCounts(t *testing.T) {
	none := &policy.Subject{}
	standing := &policy.Subject{Manifest: &envelope.Manifest{ApprovalDefault: true, ApprovalByType: map[string]bool{"look": false}}}
	for _, c := range []struct {
		agent       *policy.Subject
		taskType    string
		asked, want envelope.Approval
		held        bool
	}{
		{none, "work", envelope.ApprovalNone, envelope.ApprovalNone, false},
		{none, "work", envelope.ApprovalPre, envelope.ApprovalPre, true},
		{none, "work", envelope.ApprovalPost, envelope.ApprovalPost, false},
		{none, "work", envelope.ApprovalBoth, envelope.ApprovalBoth, true},
		{standing, "work", envelope.ApprovalNone, envelope.ApprovalPre, true},
		{standing, "work", envelope.ApprovalPost, envelope.ApprovalBoth, true},
		{standing, "look", envelope.ApprovalNone, envelope.ApprovalNone, false},
	} {
		asks := newTask()
		asks.Type, asks.Approval, asks.HumanApprover, asks.Deadline = c.taskType, c.asked, "sre", noon.Add(time.Hour)
		v := policy.Decide(asks, c.agent, policy.Rules{}, noon)
		if !v.Admit || v.Approval != c.want || slices.Contains(v.Hold, task.Approval) != c.held {
			t.Errorf("AINL-17: Decide(%q for %q) = %+v; want approval %q, held %v", c.asked, c.taskType, v, c.want, c.held)
		}
		if c.held && (!v.Until.Equal(asks.Deadline) || v.Approver != "sre") {
			t.Errorf("AINL-49: Decide(%q) = held until %v for %q; want the deadline, and sre", c.asked, v.Until, v.Approver)
		}
	}
}

func TestAChangeWindowIsWaitedForOrMissed(t *testing.T) {
	at := func(start, end time.Duration) []envelope.Window {
		return []envelope.Window{{Start: noon.Add(start), End: noon.Add(end)}}
	}
	for _, c := range []struct {
		name     string
		windows  []envelope.Window
		deadline time.Time
		kind     envelope.Kind
		hold     bool
	}{
		{"inside", at(-time.Hour, time.Hour), time.Time{}, "", false},
		{"at its start", at(0, time.Hour), time.Time{}, "", false},
		{"at its end", at(-time.Hour, 0), time.Time{}, envelope.ChangeWindowMissed, false},
		{"before", at(time.Hour, 2*time.Hour), time.Time{}, "", true},
		{"after the deadline", at(time.Hour, 2*time.Hour), noon.Add(time.Hour), envelope.ChangeWindowMissed, false},
		{"second of two", append(at(-2*time.Hour, -time.Hour), at(time.Hour, 2*time.Hour)...), time.Time{}, "", true},
	} {
		asks := newTask()
		asks.ChangeWindows, asks.Deadline = c.windows, c.deadline
		v := policy.Decide(asks, &policy.Subject{}, policy.Rules{}, noon)
		if v.Findings.Kind() != c.kind || (len(v.Hold) > 0) != c.hold {
			t.Errorf("AINL-58 %s: Decide = %+v; want kind %q, held %v", c.name, v, c.kind, c.hold)
		}
		if c.hold && !v.Until.Equal(noon.Add(time.Hour)) {
			t.Errorf("AINL-58 %s: held until %s; want the window's start", c.name, v.Until)
		}
		if v := policy.Decide(asks, &policy.Subject{}, policy.Rules{WindowExempt: []string{"wo*"}}, noon); len(v.Hold) > 0 || !v.Admit {
			t.Errorf("AINL-58 %s, exempt: Decide = %+v; want it admitted", c.name, v)
		}
	}
}

func TestARunEndsWithItsWindowWhereItsAgentSaysSo(t *testing.T) {
	end := noon.Add(time.Hour)
	for deadline, want := range map[time.Time]time.Time{{}: end, end.Add(1): end, end.Add(-1): end.Add(-1)} {
		asks := newTask()
		asks.Deadline, asks.ChangeWindows = deadline, []envelope.Window{{Start: noon, End: end}}
		if v := policy.Decide(asks, &policy.Subject{KillAtWindowEnd: true}, policy.Rules{}, noon); !v.Deadline.Equal(want) {
			t.Errorf("AINL-58: Decide(deadline %v) = until %v; want %v", deadline, v.Deadline, want)
		}
		if v := policy.Decide(asks, &policy.Subject{}, policy.Rules{}, noon); !v.Deadline.Equal(deadline) {
			t.Errorf("AINL-58: Decide(deadline %v, not killed) = until %v; want the deadline", deadline, v.Deadline)
		}
	}
}

func TestTheLeastBudgetCounts(t *testing.T) {
	class := policy.Class{Name: "low", Budget: envelope.Budget{Tokens: amount(1000), USDCents: amount(10)}, Wall: time.Minute}
	rules := policy.Rules{Classes: []policy.Class{class}}
	low := &policy.Subject{Manifest: &envelope.Manifest{BudgetClass: "low"}, Metered: true}
	asks := newTask()
	asks.Budget = envelope.Budget{Tokens: amount(3000), USDCents: amount(0)}
	v := policy.Decide(asks, low, rules, noon)
	if !v.Admit || *v.Budget.Tokens != 1000 || *v.Budget.USDCents != 0 || v.Timeout != time.Minute {
		t.Errorf("AINL-18: Decide = %+v; want 1000 tokens of the class, 0 cents of the request, a minute", v)
	}
	unheard := &policy.Subject{Manifest: &envelope.Manifest{BudgetClass: "enormous"}, Metered: true}
	if v := policy.Decide(newTask(), unheard, rules, noon); !v.Admit || v.Budget != (envelope.Budget{}) || v.Timeout != 0 {
		t.Errorf("AINL-18: Decide(unknown class) = %+v; want no caps", v)
	}
}

func TestADayBudgetIsEachOnesOwn(t *testing.T) {
	row := func(requester, agent string, cents int64) policy.DayBudget {
		return policy.DayBudget{Requester: requester, Agent: agent, Limit: envelope.Budget{USDCents: amount(cents)}}
	}
	rules := policy.Rules{DayBudgets: []policy.DayBudget{row("*", "", 1), row("me", "", 2), row("", "a", 3), row("", "b", 4)}}
	for requester, want := range map[string]int64{"me": 2, "you": 1} {
		asks := newTask()
		asks.Requester = requester
		v := policy.Decide(asks, &policy.Subject{Metered: true}, rules, noon)
		if len(v.Accounts) != 2 || v.Accounts[0].Owner != "requester:"+requester || *v.Accounts[0].Limit.USDCents != want ||
			v.Accounts[1].Owner != "agent:a" || *v.Accounts[1].Limit.USDCents != 3 {
			t.Errorf("AINL-46: Decide(for %s) = accounts %+v; want %d cents for it and 3 for a", requester, v.Accounts, want)
		}
		if v := policy.Decide(asks, &policy.Subject{}, rules, noon); v.Admit || v.Findings.Kind() != envelope.PolicyViolation {
			t.Errorf("AINL-46: Decide(unmetered for %s) = %+v; want policy_violation", requester, v)
		}
	}
}

func TestTheFirstRowOfTrustThatMatchesCounts(t *testing.T) {
	rules := policy.Rules{
		Trust:   []policy.Trust{{From: "lab", To: "int*", Allow: true}, {From: "*", To: "internal"}},
		Domains: map[string]string{"tester": "lab", "boss": "internal"},
	}
	inside := &policy.Subject{Manifest: &envelope.Manifest{TrustDomain: "internal"}}
	for requester, want := range map[string]bool{"tester": true, "boss": false, "stranger": false} {
		asks := newTask()
		asks.Requester = requester
		if v := policy.Decide(asks, inside, rules, noon); v.Admit != want {
			t.Errorf("AINL-60: Decide(from %s) = %+v; want admitted %v", requester, v, want)
		}
		if v := policy.Decide(asks, &policy.Subject{}, rules, noon); !v.Admit {
			t.Errorf("AINL-60: Decide(from %s to no domain) = %+v; want it admitted: no row says otherwise", requester, v)
		}
	}
}

// CLUTCH-27: the limits of a card on spending are enforced like those of a class.
func TestTheBudgetOfACardIsEnforced(t *testing.T) {
	asks := newTask()
	asks.Budget = envelope.Budget{Tokens: amount(900)}
	agent := &policy.Subject{Metered: true, Card: envelope.CardLimits{Budget: envelope.Budget{Tokens: amount(500), USDCents: amount(7)}}}
	v := policy.Decide(asks, agent, policy.Rules{}, noon)
	if want := (envelope.Budget{Tokens: amount(500), USDCents: amount(7)}); !v.Admit || !cmp.Equal(v.Budget, want) {
		t.Errorf("Decide = budget %+v; want %+v", v.Budget, want)
	}
	agent.Metered = false
	if v := policy.Decide(newTask(), agent, policy.Rules{}, noon); v.Admit || !strings.Contains(v.Findings.String(), "by its card") {
		t.Errorf("Decide(unmetered) = %+v; want it refused for the budget of its card", v)
	}
}
