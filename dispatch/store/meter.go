package store

import (
	"cmp"
	"context"
	"sync"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/schedule"
)

// A meter holds what a run has reported as spent. The zero value has no report.
type meter struct {
	mu    sync.Mutex // guards the fields below
	spent envelope.Cost
	over  string // the first excess that was found, in words
}

// spentSoFar returns the highest total that the run has reported.
func (m *meter) spentSoFar() envelope.Cost {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.spent
}

// excess describes what the run spent too much; "" for nothing.
func (m *meter) excess() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.over
}

// record takes the total that a run reports as spent. A total below an earlier one is a
// miscount.
func (m *meter) record(reported envelope.Cost) envelope.Cost {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.spent.Tokens, m.spent.USDCents = max(m.spent.Tokens, reported.Tokens), max(m.spent.USDCents, reported.USDCents)
	return m.spent
}

// exceed records that the run spent too much. It reports false when that was recorded before.
func (m *meter) exceed(why string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over != "" {
		return false
	}
	m.over = why
	return true
}

// Measure lets a run report its spending, if that is limited (AINL-46). The reservation shrinks
// while child runs hold a part of it, so each report reads it again. Where budgets only warn,
// the expected spending is the limit.
func (mt *Meters) Measure(run *Run, row task.Task, j *task.Job) {
	reserved, wanted := j.Allowance, j.Expected.Least(j.Task.Budget)
	j.Allowance = envelope.Budget{Tokens: cmp.Or(reserved.Tokens, wanted.Tokens), USDCents: cmp.Or(reserved.USDCents, wanted.USDCents)}
	name := task.RunName{Task: row.Seq, Attempt: j.Attempt}
	switch {
	case reserved != (envelope.Budget{}):
		j.Meter = func(reported envelope.Cost) error {
			current, err := mt.Ledger.Reserved(context.WithoutCancel(run.Ctx), name)
			if err != nil {
				current = reserved
			}
			return mt.checkLimit(run, row, envelope.Enforce, current, reported)
		}
	case j.Expected != (envelope.Budget{}):
		j.Meter = func(reported envelope.Cost) error {
			return mt.checkLimit(run, row, envelope.Warn, j.Expected, reported)
		}
	}
}

// An excessError is the cause that ends a run that spends too much.
type excessError string

// Error describes what the run spent too much.
func (e excessError) Error() string { return string(e) }

// checkLimit compares the reported spending of a run with its limit.
func (mt *Meters) checkLimit(run *Run, row task.Task, mode envelope.Mode, limit envelope.Budget, reported envelope.Cost) error {
	why := core.Overspent(limit, run.meter.record(reported))
	if why == "" {
		return nil
	}
	if run.meter.exceed(why) {
		mt.reportExcess(context.WithoutCancel(run.Ctx), row, mode, why)
	}
	if mode != envelope.Enforce {
		return nil
	}
	return excessError(why)
}

// reportExcess records that a task exceeds its budget.
func (mt *Meters) reportExcess(ctx context.Context, row task.Task, mode envelope.Mode, why string) {
	data := map[string]any{"reason": why}
	if mode == envelope.Warn {
		data["mode"] = "warn"
	}
	mt.Log(row).Warn().Str("reason", why).Msg("budget exceeded")
	if err := mt.Writer.Update(ctx, func(tx *Transaction) error { return tx.Log(Event(row, task.KindBudgetExceeded, data)) }); err != nil {
		mt.Log(row).Warn().Err(err).Msg("event of an exceeded budget not written")
	}
}

// Meters measures what runs spend.
type Meters struct {
	*Shared
	Writer *Writer
}

// SpentBy returns what the run of a task has reported as spent.
func (mt *Meters) SpentBy(seq int64) (spent envelope.Cost) {
	for _, r := range mt.Runs.Of(seq) {
		spent = r.meter.spentSoFar()
	}
	return spent
}

// JudgeAnswer makes the outcome of a submitted answer, as for an answer of a run. The time of
// the task counts from the claim, or else from the delivery.
func (mt *Meters) JudgeAnswer(ctx context.Context, row task.Task, run task.Run, j task.Job, answer []byte) (task.Outcome, error) {
	now, began := time.Now(), run.Started
	if began.IsZero() {
		began = run.Intent
	}
	metering := &Run{Ctx: ctx, Item: schedule.Item{Seq: row.Seq, Agent: row.Agent, Requester: row.Requester}}
	mt.Measure(metering, row, &j)
	o, err := mt.Agents.Answer(j, answer, task.Exit{Started: began, Finished: now, Wall: now.Sub(began)})
	return metering.Conclude(o), err
}
