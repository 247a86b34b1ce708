package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/broker"
)

// report says on the progress file of a run what it has spent.
func report(t *testing.T, dir, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "progress.jsonl"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// AINL-46.
func TestARunThatSaysItSpentTooMuchIsEnded(t *testing.T) {
	j := jobFor(t, request(`, "budget_limit": {"tokens": 3000}`))
	b := playing(t, "spend", `{"cost_used":{"tokens":2999,"usd_cents":1},"progress":0.5}`+"\n"+`{"cost_used":{"tokens":3001,"usd_cents":1}}`+"\n")
	got := bound(t, b).Run(t.Context(), j, nil)
	expect(t, "a spender", got, envelope.Failed, envelope.BudgetExceeded)
	r := got.Result
	if got.Exit.Cause != task.CauseInterrupted || got.Retry || r.Output.Summary != "half of it" || !r.Review.Required || r.Cost == nil || r.Cost.Tokens != 3001 {
		t.Errorf("outcome = %+v; want the run ended, its output and cost kept, and a review", got)
	}
	if want := "the agent used 3001 tokens of 3000 and was ended"; r.Error.Message != want {
		t.Errorf("message = %q; want %q", r.Error.Message, want)
	}
}

// A daemon that was gone reads all of it again.
func TestWhatARunSaidItSpentIsKnownAfterARestart(t *testing.T) {
	for text, want := range map[string]struct {
		tokens int64 // -1: unknown
		kind   envelope.Kind
		review string
	}{
		`{"cost_used":{"tokens":7,"usd_cents":0}}` + "\n" + `{"cost_used":{"tokens":5,"usd_cents":0}}` + "\n": {7, "", ""},
		`{"cost_used":{"tokens":7,"usd_cents":0}}`:                                                            {7, "", ""}, // its last line
		`{"message":"hello"}` + "\n\n":                                                                        {-1, "", ""},
		"hello\n" + `{"cost_used":{"tokens":7}}` + "\n" + `{"cost_used":{"tok`:                                {-1, "", "3 lines of its progress file could not be read"},
		strings.Repeat("x", 200<<10) + "\n" + `{"cost_used":{"tokens":7,"usd_cents":0}}` + "\n":               {7, "", "1 lines"},
		`{"cost_used":{"tokens":-7,"usd_cents":0}}` + "\n":                                                    {-1, "", "1 lines"},
		`{"cost_used":{"tokens":11,"usd_cents":0}}` + "\n":                                                    {11, envelope.BudgetExceeded, "the agent used 11 tokens of 10"},
	} {
		j := jobFor(t, request(`, "budget_limit": {"tokens": 10}`))
		ended(t, j, `{"status": "ok", "output": {"summary": "s"}}`, task.Exit{PID: 1 << 30})
		report(t, j.Dir, text)
		got := bound(t, playing(t, "hang")).Recover(t.Context(), j)
		said := int64(-1)
		if got.Result.Cost != nil {
			said = got.Result.Cost.Tokens
		}
		if said != want.tokens || got.Result.Error.Kind != want.kind || !strings.Contains(got.Result.Review.Reason, want.review) || got.Result.Review.Required != (want.review != "") {
			t.Errorf("%.60q: %d tokens, %+v, review %+v; want %+v", text, said, got.Result.Error, got.Result.Review, want)
		}
	}
}

func TestACostIsNoLessThanWasSaidOnTheWay(t *testing.T) {
	j := jobFor(t, request(""))
	ended(t, j, `{"status": "ok", "output": {"summary": "s"}, "cost_used": {"tokens": 3, "usd_cents": 9}}`, task.Exit{PID: 1 << 30})
	report(t, j.Dir, `{"cost_used":{"tokens":7,"usd_cents":1}}`+"\n")
	got := bound(t, playing(t, "hang")).Recover(t.Context(), j)
	if want := (envelope.Cost{Tokens: 7, USDCents: 9}); got.Result.Cost == nil || *got.Result.Cost != want {
		t.Errorf("cost = %v; want %v", got.Result.Cost, want)
	}
}

// What the tools of the broker used is added to what the agent says, which doesn't know it.
func TestWhatToolsUsedCountsToTheCostAndToTheBudget(t *testing.T) {
	for limit, want := range map[string]envelope.Kind{"100": "", "41": envelope.BudgetExceeded} {
		j := jobFor(t, request(`, "budget_limit": {"tokens": `+limit+`}`))
		j.Used = func(task.Kind, task.ToolUse) error { return nil }
		ended(t, j, `{"status": "ok", "output": {"summary": "s"}}`, task.Exit{PID: 1 << 30})
		report(t, j.Dir, `{"cost_used":{"tokens":2,"usd_cents":1}}`+"\n")
		lines := strings.Repeat(`{"called":{"tool":"s/t","result":"1","tokens":20,"usd_cents":3}}`+"\n", 2)
		for name, text := range map[string]string{broker.CallsFile: lines, broker.AnswersFile: ""} {
			if err := os.WriteFile(filepath.Join(j.Dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got := bound(t, playing(t, "hang")).Recover(t.Context(), j).Result
		if cost := (envelope.Cost{Tokens: 42, USDCents: 7}); got.Cost == nil || *got.Cost != cost || got.Error.Kind != want {
			t.Errorf("with a limit of %s tokens, the cost is %+v, and the error %+v; want %+v and %q", limit, got.Cost, got.Error, cost, want)
		}
	}
}
