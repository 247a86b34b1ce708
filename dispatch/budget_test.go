package dispatch_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

func tokens(n int64) envelope.Budget { return envelope.Budget{Tokens: &n} }

// spent is the outcome of a run that says what it used.
func spent(j task.Job, n int64) task.Outcome {
	o := decision(j, "done")
	o.Exit = task.Exit{Started: time.Now(), Finished: time.Now()}
	o.Result.Cost = &envelope.Cost{Tokens: n}
	return o
}

// stopped is the outcome of a run that was ended because it used too much.
func stopped(j task.Job, n int64, why error) task.Outcome {
	o := spent(j, n)
	o.Result.Status, o.Result.Error = envelope.Failed, envelope.Error{Kind: envelope.BudgetExceeded, Message: why.Error()}
	return o
}

// sharing is a judge under which all tasks have their own budgets, and share
// one of the day.
func sharing(limit int64) func(envelope.Task, time.Time) task.Verdict {
	return func(t envelope.Task, _ time.Time) task.Verdict {
		return task.Verdict{Admit: true, Terms: task.Terms{
			Deadline: t.Deadline, Budget: t.Budget, Accounts: []task.Account{{Owner: "requester:tester", Limit: tokens(limit)}},
		}}
	}
}

func budget(n int) string { return fmt.Sprintf(`"budget_limit":{"tokens":%d}`, n) }

func (e *engine) balance(owner string) task.Balance {
	e.t.Helper()
	b, err := e.parts.Ledger.Balance(context.Background(), owner, task.Day(time.Now()))
	e.must(err)
	return b
}

// reporting plays an agent that works until it gets what it has spent.
func reporting(words <-chan int64) play {
	return func(ctx context.Context, j task.Job) task.Outcome {
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

func TestATaskWaitsForWhatOthersHaveReservedAndIsCalledWhenTheyAreDone(t *testing.T) {
	words := make(chan int64)
	e := newEngine(t)
	e.plays["told"] = reporting(words)
	e.judge = sharing(100)
	e.start()
	e.send("t1", "told", budget(80))
	e.await("t1", task.Running)
	e.send("t2", "quick", budget(50))
	e.send("t3", "quick", budget(90))
	for _, id := range []string{"t2", "t3"} {
		e.await(id, task.Held)
		e.wantHeld(id, task.Capacity)
	}
	if _, data := e.history("t2"); !strings.Contains(data, "requester:tester has spent 0 of 100 tokens of ") || !strings.Contains(data, "80 are reserved") {
		t.Errorf("the events of t2 = %s; want why it waits", data)
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
	e.plays["told"] = reporting(words)
	e.judge = sharing(100)
	e.start()
	e.send("t1", "told")
	e.await("t1", task.Running)
	for _, id := range []string{"t2", "t3"} {
		e.send(id, "quick", budget(10))
		e.await(id, task.Held)
	}
	e.until("both count as waiting", func() bool { return !e.HasRoom() })
	e.send("t4", "quick", budget(10))
	if row := e.row("t4"); row.ID != "" {
		t.Errorf("t4 is %s; want it left in the mailbox", row.State)
	}
	words <- 0
	for _, id := range []string{"t2", "t3", "t4"} {
		e.await(id, task.Done)
	}
}

func TestATaskThatWaitsForABudgetGoesOnAfterARestart(t *testing.T) {
	e := newEngine(t)
	e.opts.Detach = true
	e.plays["left"] = func(ctx context.Context, _ task.Job) task.Outcome {
		<-ctx.Done()
		return task.Outcome{Detached: true}
	}
	e.judge = sharing(100)
	e.start()
	e.send("t1", "left")
	e.await("t1", task.Running)
	e.send("t2", "quick", budget(30))
	e.await("t2", task.Held)
	e.end()
	e.judge = sharing(130)
	e.found.Exit.Cause = task.CauseLost // so t1 counts as it was reserved
	e.start()
	e.await("t2", task.Done)
	e.wantResult("t2", `"ok"`)
	if b := e.balance("requester:tester"); b.Spent.Tokens != 100 || b.Unknown != 1 {
		t.Errorf("the account = %+v; want 100 spent, by a run of which nobody knows", b)
	}
}

func TestABudgetIsForAllAttempts(t *testing.T) {
	e := newEngine(t)
	var allowed []int64
	e.plays["again"] = func(_ context.Context, j task.Job) task.Outcome {
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
	row := e.await("t1", task.Done)
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
	e.plays["silent"] = func(_ context.Context, j task.Job) task.Outcome {
		o := spent(j, 0)
		o.Result.Cost = nil
		return o
	}
	e.plays["absent"] = func(_ context.Context, j task.Job) task.Outcome {
		return task.Outcome{Exit: task.Exit{Code: -1}, Result: envelope.Result{Status: envelope.Rejected, Error: envelope.Error{Kind: envelope.SpawnFailed}}}
	}
	void := 0
	e.plays["scarce"] = func(_ context.Context, j task.Job) task.Outcome {
		if void++; void == 1 {
			return task.Outcome{Void: fmt.Errorf("no room")}
		}
		return spent(j, 5)
	}
	e.judge = sharing(1000)
	e.start()
	for _, agent := range []string{"silent", "absent", "scarce"} {
		e.send(agent, agent, budget(100))
		e.await(agent, task.Done)
	}
	if b := e.balance("requester:tester"); b.Spent.Tokens != 105 || b.Reserved.Tokens != 0 || b.Unknown != 1 {
		t.Errorf("the account = %+v; want 105 spent, 100 of them by a run of which nobody knows", b)
	}
}

func TestABudgetThatWarnsStopsNothing(t *testing.T) {
	e := newEngine(t)
	e.judge = func(t envelope.Task, _ time.Time) task.Verdict {
		return task.Verdict{Admit: true, Terms: task.Terms{Expected: tokens(10)}}
	}
	e.plays["spender"] = func(_ context.Context, j task.Job) task.Outcome {
		if err := j.Meter(envelope.Cost{Tokens: 11}); err != nil {
			t.Errorf("Meter() = %v; want nil", err)
		}
		return spent(j, 11)
	}
	e.start()
	e.send("t1", "spender", budget(20))
	e.await("t1", task.Done)
	e.wantResult("t1", `"ok"`, `"required": true`, "the agent used 11 tokens of 10")
	e.wantEvent("t1", "budget.exceeded")
	if b := e.balance("agent:spender"); b.Spent.Tokens != 11 {
		t.Errorf("the account of the agent = %+v; want 11 spent", b)
	}
}
