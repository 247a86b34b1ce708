package dispatch_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/task"
)

// A mishap is how one code of CLowl's comes to be: what its sender, who is called
// like the code, does about its message "m-" and that name.
type mishap struct {
	code  string
	kind  envelope.Kind
	retry bool
	occur func(e *engine, who, mid string)
}

// asks is a mishap of a request that is wrong in itself.
func asks(to, members string, change ...string) func(*engine, string, string) {
	return func(e *engine, who, mid string) {
		line := word{mid: mid, p: "REQ", from: who, to: to, more: members}.line()
		e.say(strings.NewReplacer(change...).Replace(line))
	}
}

// mishaps are the sixteen codes of CLowl v0.2's table, and whether it calls each
// retryable.
var mishaps = []mishap{
	{"E001", envelope.InvalidEnvelope, true, asks("[]", "")},
	{"E002", envelope.Unauthorized, false, asks("quick", `,"auth":"guess"`)},
	{"E003", envelope.ContextUnavailable, true, asks("quick", `,"ctx":{"ref":"none.md"}`)},
	{"E004", envelope.Capacity, true, func(e *engine, who, mid string) {
		e.say(word{mid: "first", p: "REQ", from: who, to: "slow"}.line())
		e.await("first", task.Running)
		e.say(word{mid: mid, p: "REQ", from: who, to: "quick"}.line())
		e.must(e.Cancel(e.t.Context(), "first", me))
	}},
	{"E005", envelope.UnsupportedTask, false, asks("quick", "", `"t":"work"`, `"t":"unheard"`)},
	{"E006", envelope.DeadlineExceeded, true, func(e *engine, who, mid string) {
		soon := time.Now().Add(100 * time.Millisecond).UTC().Format(time.RFC3339Nano)
		e.say(word{mid: mid, p: "REQ", from: who, to: "editor", d: fmt.Sprintf(`{"deadline":%q}`, soon)}.line())
	}},
	{"E007", envelope.DependencyFailed, true, asks(`["broken","nobody"]`, "")},
	{"E008", envelope.ValidationFailed, true, asks("quick", "", "1709078400", "1709078400000")},
	{"E009", envelope.AgentCrashed, true, asks("broken", "")},
	{"E010", envelope.NoCapableAgent, false, asks("*", "")},
	{"E011", envelope.DuplicateConflict, true, func(e *engine, who, mid string) {
		asks("quick", "")(e, who, mid)
		asks("quick", `,"det":true`)(e, who, mid)
	}},
	{"E012", envelope.BudgetExceeded, false, asks("quick", "", "{}", `{"ainl":{"budget_limit":{"tokens":10}}}`)},
	{"E013", envelope.Cancelled, false, func(e *engine, who, mid string) {
		asks("slow", "")(e, who, mid)
		e.await(mid, task.Running)
		e.must(e.Cancel(e.t.Context(), envelope.ID(mid), me))
	}},
	{"E014", envelope.UnsupportedVersion, false, asks("quick", "", `"0.2"`, `"0.3"`)},
	{"E015", envelope.DelegationCycle, false, asks("a", "")},
	{"E016", envelope.SecurityViolation, false, asks("quick", `,"ctx":{"ref":"/etc/passwd"}`)},
}

// CLOWL-34, CLOWL-36.
func TestEachCodeOfCLowlArisesAndSaysWhetherToRetry(t *testing.T) {
	e := newEngine(t)
	e.secrets = map[string]string{"e002": "sesame"}
	e.opts.QueuePerRequester, e.most, e.retries, e.mode = 1, 2, 0, envelope.Enforce
	e.plays["broken"] = func(_ context.Context, j task.Job) task.Outcome { return fails(envelope.AgentCrashed)(j) }
	for from, to := range map[string]string{"a": "b", "b": "c", "c": "a"} {
		e.plays[from] = transfers(to)
	}
	e.judge = choosy(e)
	e.start()
	seen := map[string]bool{}
	for _, m := range mishaps {
		t.Run(m.code, func(t *testing.T) {
			who := strings.ToLower(m.code)
			m.occur(e, who, "m-"+who)
			l := e.wantError(who, "m-"+who, m.code, m.retry)
			if l.Body.D.Kind != string(m.kind) || l.Body.T != "error" || l.CID != "c1" {
				t.Errorf("%s is told %s; want an error of kind %s, in c1", who, l.line, m.kind)
			}
		})
		seen[m.code] = true
	}
	if len(seen) != 16 {
		t.Errorf("%d codes are told; CLowl v0.2 has 16", len(seen))
	}
}

// transfers plays an agent that hands all its work to another one, in CLowl.
func transfers(to string) play {
	return func(_ context.Context, j task.Job) task.Outcome {
		codec, _ := dialect.Of(envelope.CLowl)
		m, _ := codec.Receive(fmt.Appendf(nil, `{"p":"DLGT","to":%q,"body":{"t":"work","d":{"delegation_mode":"transfer"}}}`, to), j.Task)
		return task.Outcome{Hold: task.Children, Messages: []envelope.Message{m}}
	}
}

// choosy is a judge that knows its agents, one kind of work, and an account that
// is nearly empty.
func choosy(e *engine) func(envelope.Task, time.Time) task.Verdict {
	return func(t envelope.Task, _ time.Time) task.Verdict {
		no := func(kind envelope.Kind, why string) task.Verdict {
			return task.Verdict{Findings: envelope.Findings{{Kind: kind, Message: why}}}
		}
		switch {
		case e.plays[t.Agent] == nil && e.inboxes[t.Agent].File == "":
			return no(envelope.UnknownAgent, "is no agent here")
		case t.Type != "work":
			return no(envelope.UnsupportedTask, "is not what it does")
		}
		v := task.Verdict{Admit: true, Terms: task.Terms{Deadline: t.Deadline, Budget: t.Budget}}
		if t.Budget != (envelope.Budget{}) {
			v.Accounts = []task.Account{{Owner: "everybody", Limit: tokens(5)}}
		}
		return v
	}
}
