package core_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

// Spending of the tasks of a world, and their requests for other tasks.

const (
	spends = "spends" // has a budget, and an account of the day
	shares = "shares" // has the account alone

	account   = "requester:ann"
	perDay    = 100 // its limit
	maxDepth  = 2
	maxOthers = 3
)

// A wait is a task that waits for a budget, until a run releases some or the day ends.
type wait struct {
	short *core.Shortfall
	day   string
}

// terms returns the limits of a request.
func (l line) terms() (terms task.Terms) {
	own := map[string]int64{spends: 40, fetches: 30}[l.agent]
	if l.agent == fetches && l.content == 0 || own == 0 && l.agent != shares {
		return terms
	}
	if own > 0 {
		terms.Budget = tokens(own)
	}
	terms.Accounts = []task.Account{{Owner: account, Limit: tokens(perDay)}}
	return terms
}

func tokens(n int64) envelope.Budget { return envelope.Budget{Tokens: &n} }

// held returns the reservation of a run; 0 also for one without a limit.
func held(r *task.Run) int64 {
	if r.Reserved.Tokens == nil {
		return 0
	}
	return *r.Reserved.Tokens
}

// askers are the agents whose runs request other tasks, each with the agents of these.
var (
	askers = []string{spends, spends, shares, fetches, plain}
	asked  = []string{spends, shares, plain, fetches}
)

// ask has the agent of a run request another task, or an earlier one again.
func (w *world) ask() {
	var busy []*core.Task
	for _, t := range w.open() {
		works := t.State == task.Running && w.begun[t.Seq] > 0 || t.State == task.Waiting
		if (works || w.begun[t.Seq] > 0 && w.pick(4) == 0) && slices.Contains(askers, w.seen(t).agent) {
			busy = append(busy, t)
		}
	}
	if len(busy) == 0 {
		return
	}
	l := line{id: names[w.pick(len(names))], content: w.pick(2), agent: asked[w.pick(len(asked))], parent: busy[w.pick(len(busy))].Seq}
	w.lines = append(w.lines, l)
	w.takeAll()
	w.look(w.state.Latest(l.id))
}

// above returns the ancestors of a task, the nearest first.
func (w *world) above(parent int64) (all []task.Task) {
	for t := w.state.Task(parent); t != nil; t = w.state.Task(t.Parent) {
		all = append(all, t.Task)
	}
	return all
}

// children returns the number of tasks that a run of a task has requested.
func (w *world) children(parent int64) (n int) {
	for seq := range w.requests {
		if t := w.state.Task(seq); t != nil && t.Parent == parent {
			n++
		}
	}
	return n
}

// admit returns the verdict on a request for a new revision, whose parent has requested that
// many other tasks.
func (w *world) admit(l line, others int) task.Verdict {
	v := w.verdict(l)
	if above := w.above(l.parent); v.Admit && len(above) > 0 {
		v = core.Lineage{Ancestors: above, Children: others, MaxDepth: maxDepth, MaxChildren: maxOthers}.Admit(v, l.agent, envelope.Enforce)
	}
	return v
}

// meter has a run report its spending.
func (w *world) meter() {
	if runs := w.names(); len(runs) > 0 {
		w.spend(runs[w.pick(len(runs))])
	}
}

// spend has a run spend a part of its limit, and report it.
func (w *world) spend(name task.RunName) {
	if r, has := w.runs[name], w.booked[name]; has != nil && !r.final {
		r.said += int64(w.pick(int(held(has)-r.said) + 1))
	}
}

// cost returns the spending of an ended run; nil if unknown.
func (w *world) cost(name task.RunName) *int64 {
	r, has := w.runs[name], w.booked[name]
	if has == nil || has.Reserved.Tokens == nil {
		return nil
	}
	w.spend(name)
	r.final = true
	said := r.said
	return &said
}

// spending returns the amounts spent and reserved before a run begins.
func (w *world) spending(t *core.Task, run task.Run) (s core.Spending) {
	s.Own = w.tree(t.Seq)
	for _, above := range w.above(t.Parent) {
		a := core.Ancestor{Task: above, Tree: w.tree(above.Seq)}
		if last := w.lastRun(above.Seq); last != nil {
			a.Run = *last
			if r := w.runs[task.RunName{Task: last.Task, Attempt: last.Attempt}]; r != nil {
				a.Reported.Tokens = r.said
			}
		}
		if s.Ancestors = append(s.Ancestors, a); a.Lends() {
			break
		}
	}
	s.Balances = map[task.Key]task.Balance{}
	for _, a := range s.Accounts(run) {
		s.Balances[a.Key()] = w.balance(a.Owner, a.Day)
	}
	return s
}

func (w *world) lastRun(seq int64) (last *task.Run) {
	for name, r := range w.booked {
		if name.Task == seq && (last == nil || name.Attempt > last.Attempt) {
			last = r
		}
	}
	return last
}

// spent returns the amount that counts for an ended run: its reservation if its spending is
// unknown.
func spent(r *task.Run) int64 {
	switch {
	case !r.Settled:
		return 0
	case r.Tokens != nil:
		return *r.Tokens
	}
	return held(r)
}

// tree returns the amounts spent and reserved by a task and its descendants.
func (w *world) tree(seq int64) (sum task.TreeCost) {
	for name, r := range w.booked {
		t := w.state.Task(name.Task)
		for t != nil && t.Seq != seq {
			t = w.state.Task(t.Parent)
		}
		if t != nil {
			sum.Spent.Tokens += spent(r)
			sum.Reserved.Tokens += outstanding(r)
		}
	}
	return sum
}

// outstanding returns the reservation of a run that has not ended.
func outstanding(r *task.Run) int64 {
	if r.Settled {
		return 0
	}
	return held(r)
}

// balance returns the amounts spent and reserved by the runs of an account.
func (w *world) balance(owner, day string) (b task.Balance) {
	b.Owner, b.Day = owner, day
	for _, r := range w.booked {
		if slices.ContainsFunc(r.Terms.Accounts, func(a task.Account) bool { return a.Owner == owner && a.Day == day }) {
			b.Spent.Tokens += spent(r)
			b.Reserved.Tokens += outstanding(r)
		}
	}
	return b
}

// book records the events about runs, as the ledger does.
func (w *world) book(events []core.Event) {
	for _, e := range events {
		switch c := e.Change.(type) {
		case *core.RunIntended:
			run := c.Run
			w.booked[task.RunName{Task: run.Task, Attempt: run.Attempt}] = &run
			w.lend(run.Lender, -held(&run))
		case *core.RunEnded:
			w.giveBack(task.RunName{Task: c.Run.Task, Attempt: c.Run.Attempt}, c.Run, false)
		case *core.RunReleased:
			w.giveBack(c.Run, task.Run{}, false)
		case *core.RunVoid:
			w.giveBack(c.Run, task.Run{}, true)
		}
	}
}

// lend changes the reservation of a run that has not ended.
func (w *world) lend(lender task.RunName, change int64) {
	if r := w.booked[lender]; r != nil && !r.Settled && r.Reserved.Tokens != nil {
		r.Reserved = tokens(max(0, held(r)+change))
	}
}

// giveBack settles a run, which releases its unspent reservation.
func (w *world) giveBack(name task.RunName, how task.Run, void bool) {
	r := w.booked[name]
	if r == nil || r.Settled {
		return
	}
	had := held(r)
	r.Settled, r.Tokens = true, how.Tokens
	if !how.MayHaveSpent() {
		r.Reserved = envelope.Budget{}
	}
	w.lend(r.Lender, had-spent(r))
	if void {
		delete(w.booked, name)
	}
	w.wake(name, r)
}

// wake ends the waits for the budget that a run has released.
func (w *world) wake(name task.RunName, r *task.Run) {
	keys := []task.Key{task.BudgetKey(name.Task)}
	for _, a := range r.Terms.Accounts {
		keys = append(keys, a.Key())
	}
	if t := w.state.Task(name.Task); t != nil {
		for _, above := range w.above(t.Parent) {
			keys = append(keys, task.BudgetKey(above.Seq))
		}
	}
	for seq, waits := range w.waits {
		owner, day, ofAccount := waits.short.Limit.Key.Account()
		if slices.Contains(keys, waits.short.Limit.Key) && (!ofAccount || !core.StillShort(waits.short.Wait(), w.balance(owner, day))) {
			delete(w.waits, seq)
		}
	}
}

// await records that a task waits for a budget.
func (w *world) await(t *core.Task) {
	if short, ok := errors.AsType[*core.Shortfall](w.answer); ok && short.Waits && t.WaitsForBudget() {
		w.waits[t.Seq] = wait{short: short, day: task.Day(w.now)}
	}
}

// waitsStill reports whether a task waits for a budget and was not woken.
func (w *world) waitsStill(t *core.Task) bool {
	waits, ok := w.waits[t.Seq]
	return ok && t.WaitsForBudget() && waits.day == task.Day(w.now)
}

// checkIntent checks the limit of a run, and its place in the order, against the promises.
func (w *world) checkIntent(t *core.Task, run task.Run) {
	if held(&run) < 0 {
		w.fail("%s may spend %d", t.ID, held(&run))
	}
	above := w.above(t.Parent)
	if t.Depth > maxDepth || slices.ContainsFunc(above, func(a task.Task) bool { return a.Agent == t.Agent }) {
		w.fail("%s is for %s, %d below the first one", t.ID, t.Agent, t.Depth)
	}
	lender := w.booked[run.Lender]
	if lender == nil {
		return
	}
	for _, a := range lender.Terms.Accounts {
		if !slices.ContainsFunc(run.Terms.Accounts, func(have task.Account) bool { return have.Owner == a.Owner && have.Day == a.Day }) {
			w.fail("%s borrows from a run that counts for %s of %s, and counts for %v", t.ID, a.Owner, a.Day, run.Terms.Accounts)
		}
	}
}

// solvent fails if more is spent and reserved of a limit than it has: no run of the world
// spends more than its limit.
func (w *world) solvent() {
	days := map[string]bool{}
	for name, r := range w.booked {
		for _, a := range r.Terms.Accounts {
			days[a.Day] = true
		}
		if keeper := w.runs[name]; keeper != nil && !r.Settled && r.Reserved.Tokens != nil && keeper.said > held(r) {
			w.fail("%v has spent %d, and may spend %d", name, keeper.said, held(r))
		}
		t := w.state.Task(name.Task)
		if limit := w.seen(t).terms().Budget.Tokens; limit != nil {
			if sum := w.tree(t.Seq); sum.Spent.Tokens+sum.Reserved.Tokens > *limit {
				w.fail("%s has a budget of %d: %+v", t.ID, *limit, sum)
			}
		}
	}
	for day := range days {
		if b := w.balance(account, day); b.Spent.Tokens+b.Reserved.Tokens > perDay {
			w.fail("%s has %d on %s: %+v", account, perDay, day, b)
		}
	}
}

// checkExcess checks that a task is refused for its budget only if some of it is spent.
func (w *world) checkExcess(t *core.Task) {
	for name, r := range w.booked {
		if spent(r) > 0 || w.runs[name] != nil && w.runs[name].said > 0 {
			return
		}
	}
	w.fail("%s is refused for its budget, and nothing is spent", t.ID)
}

// reserves describes the limit of a run.
func reserves(r *task.Run) string {
	words := "RunIntended"
	if r.Reserved.Tokens != nil {
		words += fmt.Sprintf(" reserves %d", *r.Reserved.Tokens)
	}
	if r.Lender != (task.RunName{}) {
		words += fmt.Sprintf(" of task %d", r.Lender.Task)
	}
	for _, a := range r.Terms.Accounts {
		if a.Limit.Tokens != nil {
			words += fmt.Sprintf(" for %s on %s", a.Owner, strings.TrimPrefix(a.Day, "2026-"))
		}
	}
	return words
}
