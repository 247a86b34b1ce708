package store

import (
	"cmp"
	"context"
	"sync"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/core"
	"mailboxd/internal/schedule"
	"mailboxd/internal/task"
)

// A meter has what a run has reported so far as spent. The zero value has no report.
type meter struct {
	mu    sync.Mutex // guards what follows
	spent envelope.Cost
	over  string // what it spent too much, as it was first found
}

// spentSoFar returns the most that the run has said.
func (m *meter) spentSoFar() envelope.Cost {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.spent
}

// excess returns what the run spent too much, "" for nothing.
func (m *meter) excess() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.over
}

// record takes what a run reports as spent in all. A report of less than before is a
// miscount.
func (m *meter) record(said envelope.Cost) envelope.Cost {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.spent.Tokens, m.spent.USDCents = max(m.spent.Tokens, said.Tokens), max(m.spent.USDCents, said.USDCents)
	return m.spent
}

// exceed notes that the run spent too much, and reports whether that is news.
func (m *meter) exceed(why string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over != "" {
		return false
	}
	m.over = why
	return true
}

// Measure lets a run say what it spends, if that is limited (AINL-46). What it
// has shrinks while runs it asked for have some of it, so it is looked up each
// time. Where budgets only warn, what it was expected to spend is what to be
// warned of.
func (mt *Meters) Measure(run *Run, row task.Task, j *task.Job) {
	reserved, wanted := j.Allowance, j.Expected.Least(j.Task.Budget)
	j.Allowance = envelope.Budget{Tokens: cmp.Or(reserved.Tokens, wanted.Tokens), USDCents: cmp.Or(reserved.USDCents, wanted.USDCents)}
	name := task.RunName{Task: row.Seq, Attempt: j.Attempt}
	switch {
	case reserved != (envelope.Budget{}):
		j.Meter = func(said envelope.Cost) error {
			now, err := mt.Ledger.Reserved(context.WithoutCancel(run.Ctx), name)
			if err != nil {
				now = reserved
			}
			return mt.checkLimit(run, row, envelope.Enforce, now, said)
		}
	case j.Expected != (envelope.Budget{}):
		j.Meter = func(said envelope.Cost) error {
			return mt.checkLimit(run, row, envelope.Warn, j.Expected, said)
		}
	}
}

// An excessError is why a run is ended that spends too much.
type excessError string

// Error says what the run spent too much.
func (e excessError) Error() string { return string(e) }

// checkLimit compares what a run reports with its limit.
func (mt *Meters) checkLimit(run *Run, row task.Task, mode envelope.Mode, limit envelope.Budget, said envelope.Cost) error {
	why := core.Overspent(limit, run.meter.record(said))
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

// reportExcess records that the budget of a task is exceeded.
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

// The Meters know what runs spend.
type Meters struct {
	*Shared
	Writer *Writer
}

// SpentBy is what the run of a task has said so far that it spent.
func (mt *Meters) SpentBy(seq int64) (most envelope.Cost) {
	for _, r := range mt.Runs.Of(seq) {
		most = r.meter.spentSoFar()
	}
	return most
}

// JudgeAnswer makes an outcome of what somebody answers, as if a run had: the
// time it took counts from when it was claimed, or else delivered.
func (mt *Meters) JudgeAnswer(ctx context.Context, row task.Task, was task.Run, j task.Job, said []byte) (task.Outcome, error) {
	now, began := time.Now(), was.Started
	if began.IsZero() {
		began = was.Intent
	}
	metered := &Run{Ctx: ctx, Item: schedule.Item{Seq: row.Seq, Agent: row.Agent, Requester: row.Requester}}
	mt.Measure(metered, row, &j)
	o, err := mt.Agents.Answer(j, said, task.Exit{Started: began, Finished: now, Wall: now.Sub(began)})
	return metered.Conclude(o), err
}
