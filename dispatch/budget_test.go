package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mailboxd/dispatch"
	"mailboxd/envelope"
	"mailboxd/internal/ledger"
	"mailboxd/internal/runner"
)

func tokens(n int64) envelope.Budget { return envelope.Budget{Tokens: &n} }

// spent is the outcome of a run that says what it used.
func spent(j dispatch.Job, n int64) dispatch.Outcome {
	o := answer(j, "done")
	o.Exit = runner.Exit{Started: time.Now(), Finished: time.Now()}
	o.Result.Cost = &envelope.Cost{Tokens: n}
	return o
}

// stopped is the outcome of a run that was ended because it used too much.
func stopped(j dispatch.Job, n int64, why error) dispatch.Outcome {
	o := spent(j, n)
	o.Result.Status, o.Result.Error = envelope.Failed, envelope.Error{Kind: envelope.BudgetExceeded, Message: why.Error()}
	return o
}

// sharing is a judge under which all tasks have their own budgets, and share
// one of the day.
func sharing(limit int64) func(envelope.Task, time.Time) dispatch.Verdict {
	return func(t envelope.Task, _ time.Time) dispatch.Verdict {
		return dispatch.Verdict{Admit: true, Terms: ledger.Terms{
			Deadline: t.Deadline, Budget: t.Budget, Accounts: []ledger.Account{{Owner: "requester:tester", Limit: tokens(limit)}},
		}}
	}
}

func budget(n int) string { return fmt.Sprintf(`"budget_limit":{"tokens":%d}`, n) }

func (e *engine) balance(owner string) ledger.Balance {
	e.t.Helper()
	b, err := e.parts.Ledger.Balance(context.Background(), owner, ledger.Day(time.Now()))
	e.must(err)
	return b
}

// told plays an agent that works until it is told what it has spent.
func told(words <-chan int64) play {
	return func(ctx context.Context, j dispatch.Job) dispatch.Outcome {
		select {
		case n := <-words:
			if j.Meter != nil {
				if err := j.Meter(envelope.Cost{Tokens: n}); err != nil {
					return stopped(j, n, err)
				}
			}
			return spent(j, n)
		case <-ctx.Done():
			return cut(ctx)
		}
	}
}

// AINL-46. Three agents share a day's budget: two report as they go, in steps
// of 7, and the third only when it is done.
func TestADayBudgetIsOverspentByNoMoreThanWhatRanUnmetered(t *testing.T) {
	const limit, tasks, step = 1000, 50, 7
	e := newEngine(t)
	e.opts.Workers = tasks
	e.judge = sharing(limit)
	var unmetered, most atomic.Int64
	done := func(j dispatch.Job, used int64) {
		unmetered.Add(max(0, used-*j.Allowance.Tokens))
		b := e.balance("requester:tester")
		if all := b.Spent.Tokens + b.Reserved.Tokens; all > limit+unmetered.Load() {
			t.Errorf("%d of %d are spent or reserved, and %d ran unmetered", all, limit, unmetered.Load())
		}
	}
	for name, metered := range map[string]bool{"a": true, "b": true, "c": false} {
		e.plays[name] = func(_ context.Context, j dispatch.Job) dispatch.Outcome {
			used, wants := int64(0), int64(len(j.Task.ID)*37%61+5)
			for ; metered && used < wants; used += step {
				if err := j.Meter(envelope.Cost{Tokens: used}); err != nil {
					done(j, used)
					return stopped(j, used, err)
				}
			}
			used = max(used, wants)
			done(j, used)
			return spent(j, used)
		}
	}
	e.start()
	for n := range tasks {
		id := fmt.Sprintf("%s%d", strings.Repeat("t", 1+n%23), n)
		switch {
		case n%10 == 9: // what is left of the day, whatever that is
			e.send(id, string("abc"[n%3]))
		default:
			e.send(id, string("abc"[n%3]), budget(40))
		}
	}
	e.must(e.Idle(t.Context()))
	kinds := map[envelope.Kind]int{}
	rows, err := e.parts.Ledger.Tasks(t.Context(), ledger.Filter{})
	e.must(err)
	for _, row := range rows {
		kinds[row.Kind]++
		if row.State != ledger.Done {
			t.Errorf("%s is %s %v; want it done", row.ID, row.State, row.Reasons)
		}
	}
	b := e.balance("requester:tester")
	if over := b.Spent.Tokens - limit; over > unmetered.Load() || b.Reserved.Tokens != 0 {
		t.Errorf("%d too much are spent and %d reserved; %d ran unmetered", over, b.Reserved.Tokens, unmetered.Load())
	}
	if b.Spent.Tokens < limit/2 || kinds[""] == 0 || kinds[envelope.BudgetExceeded] == 0 {
		t.Errorf("%d of %d spent, ends %v; want some done, and some refused", b.Spent.Tokens, limit, kinds)
	}
	most.Store(b.Spent.Tokens - limit)
	t.Logf("%d of %d spent, %+d; %d ran unmetered beyond what was reserved for it; ends: %v", b.Spent.Tokens, limit, most.Load(), unmetered.Load(), kinds)
}

func TestATaskWaitsForWhatOthersHaveReservedAndIsCalledWhenTheyAreDone(t *testing.T) {
	words := make(chan int64)
	e := newEngine(t)
	e.plays["told"] = told(words)
	e.judge = sharing(100)
	e.start()
	e.send("t1", "told", budget(80))
	e.await("t1", ledger.Running)
	e.send("t2", "quick", budget(50))
	e.send("t3", "quick", budget(90))
	for _, id := range []string{"t2", "t3"} {
		e.await(id, ledger.Held)
		e.wantHeld(id, ledger.Capacity)
	}
	if _, data := e.story("t2"); !strings.Contains(data, "requester:tester has spent 0 of 100 tokens of ") || !strings.Contains(data, "80 are reserved") {
		t.Errorf("the story of t2 = %s; want why it waits", data)
	}
	words <- 20
	e.must(e.Idle(t.Context()))
	e.wantResult("t2", `"ok"`)
	e.wantResult("t3", `"rejected"`, "budget_exceeded", "has spent 20 of 100 tokens", "the task may spend 90")
	e.wantEvent("t3", "budget.exceeded")
	for id, kinds := range map[string]string{"t1": "budget.reserved", "t2": "budget.settled"} {
		e.wantEvent(id, kinds)
	}
}

func TestTasksThatWaitForABudgetFillTheQueue(t *testing.T) {
	words := make(chan int64)
	e := newEngine(t)
	e.opts.Queue = 2
	e.plays["told"] = told(words)
	e.judge = sharing(100)
	e.start()
	e.send("t1", "told")
	e.await("t1", ledger.Running)
	for _, id := range []string{"t2", "t3"} {
		e.send(id, "quick", budget(10))
		e.await(id, ledger.Held)
	}
	e.send("t4", "quick", budget(10))
	if row := e.row("t4"); row.ID != "" {
		t.Errorf("t4 is %s; want it left in the mailbox", row.State)
	}
	words <- 0
	for _, id := range []string{"t2", "t3", "t4"} {
		e.await(id, ledger.Done)
	}
}

func TestATaskThatWaitsForABudgetGoesOnAfterARestart(t *testing.T) {
	e := newEngine(t)
	e.opts.Detach = true
	e.plays["left"] = func(ctx context.Context, _ dispatch.Job) dispatch.Outcome {
		<-ctx.Done()
		return dispatch.Outcome{Detached: true}
	}
	e.judge = sharing(100)
	e.start()
	e.send("t1", "left")
	e.await("t1", ledger.Running)
	e.send("t2", "quick", budget(30))
	e.await("t2", ledger.Held)
	e.end()
	e.judge = sharing(130)
	e.found.Exit.Cause = runner.Lost // so t1 counts as it was reserved
	e.start()
	e.await("t2", ledger.Done)
	e.wantResult("t2", `"ok"`)
	if b := e.balance("requester:tester"); b.Spent.Tokens != 100 || b.Unknown != 1 {
		t.Errorf("the account = %+v; want 100 spent, by a run of which nobody knows", b)
	}
}

func TestABudgetIsForAllAttempts(t *testing.T) {
	e := newEngine(t)
	var allowed []int64
	e.plays["again"] = func(_ context.Context, j dispatch.Job) dispatch.Outcome {
		allowed = append(allowed, *j.Allowance.Tokens)
		o := spent(j, 60)
		o.Result.Status, o.Retry = envelope.Failed, true
		if j.Attempt == 2 {
			o.Result.Cost.Tokens = 40
		}
		return o
	}
	e.judge = sharing(1000)
	e.retries = 5
	e.start()
	e.send("t1", "again", budget(100))
	row := e.await("t1", ledger.Done)
	if fmt.Sprint(allowed) != "[100 40]" || row.Status != envelope.Failed || row.Kind != envelope.BudgetExceeded {
		t.Errorf("runs were allowed %v, and it ends %s (%s); want [100 40], error (budget_exceeded)", allowed, row.Status, row.Kind)
	}
	e.wantResult("t1", "the task has spent 100 of 100 tokens")
	if b := e.balance("requester:tester"); b.Spent.Tokens != 100 || b.Reserved.Tokens != 0 {
		t.Errorf("the account = %+v; want 100 spent, and nothing reserved", b)
	}
}

func TestWhatNobodyKnowsCountsAsItWasReservedAndWhatNeverRanDoesNot(t *testing.T) {
	e := newEngine(t)
	e.plays["silent"] = func(_ context.Context, j dispatch.Job) dispatch.Outcome {
		o := spent(j, 0)
		o.Result.Cost = nil
		return o
	}
	e.plays["absent"] = func(_ context.Context, j dispatch.Job) dispatch.Outcome {
		return dispatch.Outcome{Exit: runner.Exit{Code: -1}, Result: envelope.Result{Status: envelope.Rejected, Error: envelope.Error{Kind: envelope.SpawnFailed}}}
	}
	void := 0
	e.plays["scarce"] = func(_ context.Context, j dispatch.Job) dispatch.Outcome {
		if void++; void == 1 {
			return dispatch.Outcome{Void: fmt.Errorf("no room")}
		}
		return spent(j, 5)
	}
	e.judge = sharing(1000)
	e.start()
	for _, agent := range []string{"silent", "absent", "scarce"} {
		e.send(agent, agent, budget(100))
		e.await(agent, ledger.Done)
	}
	if b := e.balance("requester:tester"); b.Spent.Tokens != 105 || b.Reserved.Tokens != 0 || b.Unknown != 1 {
		t.Errorf("the account = %+v; want 105 spent, 100 of them by a run of which nobody knows", b)
	}
}

func TestABudgetThatWarnsStopsNothing(t *testing.T) {
	e := newEngine(t)
	e.mode = envelope.Warn
	e.plays["spender"] = func(_ context.Context, j dispatch.Job) dispatch.Outcome {
		if err := j.Meter(envelope.Cost{Tokens: 11}); err != nil {
			t.Errorf("Meter() = %v; want nil", err)
		}
		return spent(j, 11)
	}
	e.start()
	e.send("t1", "spender", budget(10))
	e.await("t1", ledger.Done)
	e.wantResult("t1", `"ok"`, `"required": true`, "the agent used 11 tokens of 10")
	e.wantEvent("t1", "budget.exceeded")
	if b := e.balance("agent:spender"); b.Spent.Tokens != 11 {
		t.Errorf("the account of the agent = %+v; want 11 spent", b)
	}
}

// Whoever waits is called in the end, whatever becomes of those before them.
func TestNobodyWaitsForABudgetForEver(t *testing.T) {
	for seed := range uint64(4) {
		dice := rand.New(rand.NewPCG(seed, 7))
		e := newEngine(t)
		e.opts.Workers = 3
		e.judge = sharing(2000)
		e.plays["spender"] = func(_ context.Context, j dispatch.Job) dispatch.Outcome {
			return spent(j, min(*j.Allowance.Tokens, int64(len(j.Task.ID))))
		}
		words := make(chan int64)
		e.plays["told"] = told(words)
		e.start()
		e.send("first", "told") // has all there is
		e.await("first", ledger.Running)
		var ids []string
		for n := range 40 {
			id := fmt.Sprintf("t%d%s", n, strings.Repeat("x", dice.IntN(100)))
			if ids = append(ids, id); dice.IntN(3) == 0 {
				e.send(id, "spender")
			} else {
				e.send(id, "spender", budget(1+dice.IntN(1990)))
			}
		}
		words <- 5
		for _, id := range ids {
			if dice.IntN(3) > 0 {
				continue
			}
			err := e.Cancel(t.Context(), envelope.ID(id), me)
			if _, late := errors.AsType[*dispatch.StateError](err); err != nil && !late {
				t.Error(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		if err := e.Idle(ctx); err != nil {
			for _, id := range ids {
				if row := e.row(id); row.State != ledger.Done {
					t.Errorf("seed %d: %.5s is %s %v", seed, id, row.State, row.Reasons)
				}
			}
			t.Fatalf("Idle() = %v; the account stands at %+v", err, e.balance("requester:tester"))
		}
		cancel()
		e.end()
	}
}
