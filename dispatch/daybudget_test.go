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

	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
	"mailboxd/internal/testtools/slowtest"
)

// A till is where the runs of a test account for what they spent beyond what
// was reserved for them.
type till struct {
	*engine
	limit     int64
	unmetered atomic.Int64
}

// done accounts for a run, while the others go on.
func (c *till) done(j task.Job, used int64) {
	c.unmetered.Add(max(0, used-*j.Allowance.Tokens))
	b := c.balance("requester:tester")
	if all := b.Spent.Tokens + b.Reserved.Tokens; all > c.limit+c.unmetered.Load() {
		c.t.Errorf("%d of %d are spent or reserved, and %d ran unmetered", all, c.limit, c.unmetered.Load())
	}
}

// spender plays an agent that reports in steps of 7, or only when it is done.
func (c *till) spender(metered bool) play {
	return func(_ context.Context, j task.Job) task.Outcome {
		used, wants := int64(0), int64(len(j.Task.ID)*37%61+5)
		for ; metered && used < wants; used += 7 {
			if err := j.Meter(envelope.Cost{Tokens: used}); err != nil {
				c.done(j, used)
				return stopped(j, used, err)
			}
		}
		used = max(used, wants)
		c.done(j, used)
		return spent(j, used)
	}
}

// AINL-46. Three agents share a day's budget, and one of them does not report.
func TestADayBudgetIsOverspentByNoMoreThanWhatRanUnmetered(t *testing.T) {
	const tasks = 50
	c := till{engine: newEngine(t), limit: 1000}
	c.opts.Workers = tasks
	c.judge = sharing(c.limit)
	c.plays["a"], c.plays["b"], c.plays["c"] = c.spender(true), c.spender(true), c.spender(false)
	c.start()
	for n := range tasks {
		id, agent := fmt.Sprintf("%s%d", strings.Repeat("t", 1+n%23), n), string("abc"[n%3])
		if n%10 == 9 {
			c.send(id, agent) // may spend what is left of the day, whatever that is
		} else {
			c.send(id, agent, budget(40))
		}
	}
	c.must(c.Idle(t.Context()))
	kinds := map[envelope.Kind]int{}
	rows, err := c.parts.Ledger.Tasks(t.Context(), ledger.Filter{})
	c.must(err)
	for _, row := range rows {
		kinds[row.Kind]++
		if row.State != task.Done {
			t.Errorf("%s is %s %v; want it done", row.ID, row.State, row.Reasons)
		}
	}
	b, unmetered := c.balance("requester:tester"), c.unmetered.Load()
	if b.Spent.Tokens-c.limit > unmetered || b.Reserved.Tokens != 0 {
		t.Errorf("%d of %d are spent and %d reserved; %d ran unmetered", b.Spent.Tokens, c.limit, b.Reserved.Tokens, unmetered)
	}
	if b.Spent.Tokens < c.limit/2 || kinds[""] == 0 || kinds[envelope.BudgetExceeded] == 0 {
		t.Errorf("%d of %d spent, ends %v; want some done, and some refused", b.Spent.Tokens, c.limit, kinds)
	}
	t.Logf("%d of %d tokens spent (%+d); %d were spent unmetered, beyond what was reserved; ends: %v", b.Spent.Tokens, c.limit, b.Spent.Tokens-c.limit, unmetered, kinds)
}

// Anyone who waits is called in the end, whatever becomes of those before them.
func TestNobodyWaitsForABudgetForEver(t *testing.T) {
	slowtest.SkipShort(t, "it waits for seconds")
	for seed := range uint64(slowtest.Times(5)) {
		dice := rand.New(rand.NewPCG(seed, 7))
		e := newEngine(t)
		e.opts.Workers = 3
		e.judge = sharing(2000)
		e.plays["spender"] = func(_ context.Context, j task.Job) task.Outcome {
			return spent(j, min(*j.Allowance.Tokens, int64(len(j.Task.ID))))
		}
		words := make(chan int64)
		e.plays["told"] = reporting(words)
		e.start()
		e.send("first", "told") // has all there is
		e.await("first", task.Running)
		ids := e.crowd(dice, "spender")
		words <- 5
		e.cancelSome(dice, ids)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		err := e.Idle(ctx)
		cancel()
		for _, id := range ids {
			if row := e.row(id); row.State != task.Done {
				t.Errorf("seed %d: %.5s is %s %v", seed, id, row.State, row.Reasons)
			}
		}
		if err != nil {
			t.Fatalf("Idle() = %v; the account stands at %+v", err, e.balance("requester:tester"))
		}
		e.end()
	}
}

// crowd sends tasks with all sorts of budgets.
func (e *engine) crowd(dice *rand.Rand, agent string) (ids []string) {
	for n := range 40 {
		id := fmt.Sprintf("t%d%s", n, strings.Repeat("x", dice.IntN(100)))
		if ids = append(ids, id); dice.IntN(3) == 0 {
			e.send(id, agent)
		} else {
			e.send(id, agent, budget(1+dice.IntN(1990)))
		}
	}
	return ids
}

func (e *engine) cancelSome(dice *rand.Rand, ids []string) {
	for _, id := range ids {
		if dice.IntN(3) > 0 {
			continue
		}
		err := e.Cancel(e.t.Context(), envelope.ID(id), me)
		if _, late := errors.AsType[*core.StateError](err); err != nil && !late {
			e.t.Error(err)
		}
	}
}

// A task in an inbox keeps what it has reserved until somebody answers it, which nobody may do for days.
func TestTheEngineIsIdleWhenTheRestWaitsForBudgetThatATaskInAnInboxHas(t *testing.T) {
	e := newEngine(t)
	e.judge = sharing(100)
	e.start()
	e.send("fetched", "editor", budget(60))
	e.await("fetched", task.Waiting)
	e.send("waiter", "quick", budget(60))
	e.isIdle("a task waits for the budget of one in an inbox")
	e.wantHeld("waiter", task.Capacity)

	e.restart()
	e.isIdle("so it does after a start")
	e.wantHeld("waiter", task.Capacity)

	e.must(e.Cancel(t.Context(), "fetched", core.By{Who: "tester"}))
	e.isIdle("the budget is free")
	e.await("waiter", task.Done)
}

// isIdle fails the test when the engine does not become idle.
func (e *engine) isIdle(why string) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), 10*time.Second)
	defer cancel()
	if err := e.Idle(ctx); err != nil {
		e.t.Fatalf("%s: Idle() = %v; the log says\n%s", why, err, e.log.String())
	}
}
