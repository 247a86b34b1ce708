package core_test

import (
	"flag"
	"slices"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/testtools/slowtest"
)

// A mutant is a planted fault: it changes a command to the core, its events, or the content of
// the journal.
type mutant struct {
	name    string
	command func(*world, core.Command)
	events  func(*world, core.Command, []core.Event) []core.Event
	journal func([]core.Event) []core.Event
}

// without drops the events of a command with a change of a type.
func without[C core.Change](applies func(core.Command) bool) func(*world, core.Command, []core.Event) []core.Event {
	return func(_ *world, c core.Command, events []core.Event) []core.Event {
		if !applies(c) {
			return events
		}
		return slices.DeleteFunc(slices.Clone(events), func(e core.Event) bool { _, is := e.Change.(C); return is })
	}
}

// is reports whether a command is of a type.
func is[C core.Command](c core.Command) bool { _, ok := c.(C); return ok }

func every(core.Command) bool { return true }

// changing changes the changes of a type.
func changing[C core.Change](change func(*world, C)) func(*world, core.Command, []core.Event) []core.Event {
	return func(w *world, _ core.Command, events []core.Event) []core.Event {
		for _, e := range events {
			if c, ok := e.Change.(C); ok {
				change(w, c)
			}
		}
		return events
	}
}

// intending changes the facts about a run that is about to begin.
func intending(change func(*core.Intend)) func(*world, core.Command) {
	return func(_ *world, c core.Command) {
		if i, ok := c.(*core.Intend); ok {
			change(i)
		}
	}
}

// mutants are faults that an engineer could make. Each must break a promise.
var mutants = []mutant{
	{name: "a task that follows another one is queued", command: func(_ *world, c core.Command) {
		if accept, ok := c.(*core.Accept); ok {
			accept.Verdict.Hold = slices.DeleteFunc(slices.Clone(accept.Verdict.Hold), func(r task.Reason) bool { return r == task.SameCommand })
		}
	}},
	{name: "a verdict counts although the task has changed since", command: func(w *world, c core.Command) {
		if j, ok := c.(*core.Judge); ok && w.state.Task(j.Task) != nil {
			j.Seen = core.See(w.state.Task(j.Task).Task)
		}
	}},
	{name: "an approval counts for what has changed since", command: func(w *world, c core.Command) {
		if a, ok := c.(*core.Answer); ok && w.state.Task(a.Task) != nil {
			t := w.state.Task(a.Task)
			a.Seen, a.Verdict, a.Digest = core.See(t.Task), w.verdict(w.seen(t)), digestAsked(t)
		}
	}},
	{name: "the requester may approve", command: func(w *world, c core.Command) {
		if a, ok := c.(*core.Answer); ok && slices.Contains(a.Person.Names, "ann") {
			a.Person = core.Person{Names: []string{""}}
		}
	}},
	{name: "an answer in review is shown when nobody decided", events: func(_ *world, c core.Command, events []core.Event) []core.Event {
		if !is[*core.ReviewDue](c) {
			return events
		}
		return changing(func(_ *world, m *core.Moved) { m.Result, m.Status, m.Kind = nil, "", "" })(nil, c, events)
	}},
	{name: "a question stays open after the end", events: without[*core.Concluded](func(c core.Command) bool { return is[*core.Cancel](c) || is[*core.Accept](c) })},
	{name: "a question about a call stays open after the end of its run", events: without[*core.Concluded](func(c core.Command) bool { return !is[*core.Answer](c) && !is[*core.ExpireCall](c) })},
	{name: "a task doesn't say that a call waits", events: without[*core.Moved](is[*core.AskCall])},
	{name: "a task says that a call waits after the answer", events: changing(func(_ *world, c *core.Moved) {
		if c.From == task.Running && c.To == task.Running {
			c.Reasons = []task.Reason{task.Approval}
		}
	})},
	{name: "a run doesn't end with its task", events: without[*core.RunEnded](func(c core.Command) bool { return is[*core.Finish](c) })},
	{name: "a run doesn't end with what replaces its task", events: without[*core.RunEnded](func(c core.Command) bool { return is[*core.Accept](c) || is[*core.Cancel](c) })},
	{name: "an intent isn't kept", events: without[*core.RunIntended](every)},
	{name: "the next attempt has the number of the last one", events: changing(func(_ *world, c *core.Moved) {
		if c.To == task.Running && c.Attempt > 1 {
			c.Attempt--
		}
	})},
	{name: "a later revision doesn't wait", events: changing(func(_ *world, c *core.Added) {
		if c.Task.State == task.Received {
			c.Task.State = task.Queued
		}
	})},
	{name: "a later revision has the number of the last one", events: changing(func(_ *world, c *core.Added) { c.Task.Revision = max(1, c.Task.Revision-1) })},
	{name: "a later revision doesn't replace the result", events: changing(func(_ *world, c *core.Added) { c.Task.Replaces = false })},
	{name: "a revision that is replaced still has a result to show", events: without[*core.Settled](func(c core.Command) bool { return is[*core.Accept](c) })},
	{name: "an answer is lost", events: changing(func(w *world, c *core.Moved) {
		if c.To == task.Done && w.pick(4) == 0 {
			c.Result = nil
		}
	})},
	{name: "an operator's hold ends with a verdict", command: func(_ *world, c core.Command) {
		if j, ok := c.(*core.Judge); ok {
			j.Verdict.Hold = slices.DeleteFunc(slices.Clone(j.Verdict.Hold), func(r task.Reason) bool { return r == task.Operator })
		}
	}},
	{name: "a task starts again by itself whose run directory could not be made", command: func(_ *world, c core.Command) {
		if j, ok := c.(*core.Judge); ok {
			j.Verdict.Hold = slices.DeleteFunc(slices.Clone(j.Verdict.Hold), func(r task.Reason) bool { return r == task.RunDirectory })
		}
	}},
	{name: "an operator's hold ends with a newer line", events: changing(func(_ *world, c *core.Added) {
		c.Task.Reasons = slices.DeleteFunc(slices.Clone(c.Task.Reasons), func(r task.Reason) bool { return r == task.Operator })
	})},
	{name: "a hold has no end", events: changing(func(_ *world, c *core.Moved) {
		if c.To == task.Held && slices.Contains(c.Reasons, task.Capacity) {
			c.Until = c.Until.AddDate(1, 0, 0)
		}
	})},
	{name: "the time of a task is forgotten", events: changing(func(_ *world, c *core.Moved) { c.Due = time.Time{} })},
	{name: "a lease ends too early", events: changing(func(_ *world, c *core.Moved) {
		if c.To == task.Waiting && !c.Until.IsZero() {
			c.Until = c.Until.Add(-15 * time.Second)
		}
	})},
	{name: "another program renews a lease", command: func(w *world, c core.Command) {
		if r, ok := c.(*core.Renew); ok && w.state.Task(r.Task) != nil {
			r.Token = w.state.Task(r.Task).Token
		}
	}},
	{name: "a run that began is taken back", events: func(w *world, c core.Command, events []core.Event) []core.Event {
		f, ok := c.(*core.Finish)
		if !ok || f.Kind != envelope.RunLost {
			return events
		}
		again, _ := core.Decide(w.state, &core.Void{Task: f.Task, Attempt: f.Run.Attempt, Keep: true}, w.cfg, w.now)
		return again
	}},
	{name: "a hold for an unread answer ends the task", events: changing(func(_ *world, c *core.Moved) {
		if slices.Contains(c.Reasons, task.AnswerUnread) && c.From == task.Running {
			c.To, c.Reasons = task.Done, nil
		}
	})},
	{name: "an answer is shown that its overseer rejects", events: func(_ *world, c core.Command, events []core.Event) []core.Event {
		if !is[*core.FailReview](c) {
			return events
		}
		return changing(func(_ *world, m *core.Moved) { m.Result, m.Status, m.Kind = nil, "", "" })(nil, c, events)
	}},
	{name: "a message wakes what an operator holds", events: func(_ *world, c core.Command, events []core.Event) []core.Event {
		if !is[*core.Wake](c) {
			return events
		}
		return changing(func(_ *world, m *core.Moved) { m.To, m.Reasons, m.Until = task.Queued, nil, time.Time{} })(nil, c, events)
	}},
	{name: "a wait does not end the run", events: without[*core.RunEnded](func(c core.Command) bool { return is[*core.EndRun](c) })},
	{name: "a reservation forgets its lender", events: changing(func(_ *world, c *core.RunIntended) { c.Run.Lender = task.RunName{} })},
	{name: "what a run borrows counts for today", events: changing(func(w *world, c *core.RunIntended) {
		c.Run.Terms.Accounts = slices.Clone(c.Run.Terms.Accounts)
		for i := range c.Run.Terms.Accounts {
			c.Run.Terms.Accounts[i].Day = task.Day(w.now)
		}
	})},
	{name: "a budget is one more than it is", command: intending(func(c *core.Intend) {
		if own := c.Run.Terms.Budget.Tokens; own != nil {
			c.Run.Terms.Budget = tokens(*own + 1)
		}
	})},
	{name: "an account has room for what others have reserved", command: intending(func(c *core.Intend) {
		for key, b := range c.Spending.Balances {
			c.Spending.Balances[key] = task.Balance{Spent: b.Spent}
		}
	})},
	{name: "a budget is for each attempt", command: intending(func(c *core.Intend) { c.Spending.Own = task.TreeCost{} })},
	{name: "a run lends what it has spent", command: intending(func(c *core.Intend) {
		for n := range c.Spending.Ancestors {
			c.Spending.Ancestors[n].Reported = envelope.Cost{}
		}
	})},
	{name: "what others have reserved is spent", command: intending(func(c *core.Intend) {
		for key, b := range c.Spending.Balances {
			c.Spending.Balances[key] = task.Balance{Spent: envelope.Cost{Tokens: b.Spent.Tokens + b.Reserved.Tokens}, Reserved: b.Reserved}
		}
	})},
	{name: "a wait for a budget doesn't end", events: func(w *world, c core.Command, events []core.Event) []core.Event {
		if j, ok := c.(*core.Judge); ok && w.state.Task(j.Task) != nil && w.state.Task(j.Task).WaitsForBudget() {
			return nil
		}
		return events
	}},
	{name: "a wait for a budget is a pause", events: changing(func(w *world, c *core.Moved) {
		if is[*core.Intend](w.doing) && c.To == task.Held {
			c.Until = w.now.AddDate(1, 0, 0)
		}
	})},
	{name: "a child isn't held to the limits of its lineage", command: func(w *world, c core.Command) {
		if a, ok := c.(*core.Accept); ok && a.Parent != nil {
			a.Verdict = w.verdict(line{id: a.Request.ID, agent: a.Request.Agent})
		}
	}},
	{name: "the choice of an agent is not durable", journal: func(events []core.Event) []core.Event {
		kept := slices.Clone(events)
		for i, e := range kept {
			if c, ok := e.Change.(*core.Moved); ok && c.Agent != "" {
				without := *c
				without.Agent = ""
				kept[i].Change = &without
			}
		}
		return kept
	}},
	{name: "a choice counts although the task has changed since", command: func(w *world, c core.Command) {
		if r, ok := c.(*core.Route); ok && w.state.Task(r.Task) != nil {
			r.Seen = core.See(w.state.Task(r.Task).Task)
		}
	}},
	{name: "a task is taken back that has begun", command: func(w *world, c core.Command) {
		if u, ok := c.(*core.Unbind); ok && w.state.Task(u.Task) != nil {
			t := w.state.Task(u.Task)
			u.Seen, t.Began = core.See(t.Task), false
		}
	}},
	{name: "the journal loses an event", journal: func(events []core.Event) []core.Event {
		return events[:max(0, len(events)-1)]
	}},
}

var mutantSchedules = flag.Int("mutants", 20_000, "how many schedules a planted fault may survive")

func TestEveryPlantedFaultIsFound(t *testing.T) {
	slowtest.Require(t, "it tries the simulator itself, with thousands of schedules")
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			for seed := range *mutantSchedules {
				w := newWorld(seeded(uint64(seed)))
				w.bug = &m
				if err := w.play(stepsOfSchedule); err != nil {
					t.Logf("found in schedule %d: %v", seed, err)
					return
				}
			}
			t.Errorf("not found in %d schedules", *mutantSchedules)
		})
	}
}
