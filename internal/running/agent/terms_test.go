package agent_test

import (
	"slices"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/agent"
)

func TestTheTermsCanShortenARunAndNeverLengthenIt(t *testing.T) {
	for name, play := range map[string]func(own, terms time.Duration) task.Outcome{
		"exec": func(own, terms time.Duration) task.Outcome {
			b, j := playing(t, "hang"), jobFor(t, request(""))
			b.Timeout, j.Timeout = own, terms
			return bound(t, b).Run(t.Context(), j, nil)
		},
		"worker": func(own, terms time.Duration) task.Outcome {
			b, j := working(t, "hang"), lineJob(t, "")
			b.Timeout, b.Grace, j.Timeout = own, time.Millisecond, terms
			return registry(t, b).Run(t.Context(), j, nil)
		},
	} {
		for _, c := range []struct{ own, terms time.Duration }{
			{time.Hour, time.Millisecond}, {time.Millisecond, time.Hour}, {0, time.Millisecond}, {time.Millisecond, 0},
		} {
			got := play(c.own, c.terms)
			expect(t, "AINL-18 "+name, got, envelope.Failed, envelope.Timeout)
			if want := "the agent was not done after 1ms and was ended"; got.Result.Error.Message != want {
				t.Errorf("AINL-18 %s: own timeout %v, terms %v: %q; want %q", name, c.own, c.terms, got.Result.Error.Message, want)
			}
		}
	}
}

func TestAnAgentIsToldTheBudgetThatBinds(t *testing.T) {
	b := playing(t, "tell")
	b.Output = agent.JSON
	j := jobFor(t, request(`, "budget_limit": {"tokens": 3000, "usd_cents": 5}`))
	tokens, cents := int64(1000), int64(5) // what is left of it
	j.Allowance = envelope.Budget{Tokens: &tokens, USDCents: &cents}
	env := tell(t, bound(t, b).Run(t.Context(), j, nil)).Environ
	for _, want := range []string{"MAILBOX_BUDGET_TOKENS=1000", "MAILBOX_BUDGET_USD_CENTS=5"} {
		if !slices.Contains(env, want) {
			t.Errorf("AINL-46: environment %q lacks %s", env, want)
		}
	}
}
