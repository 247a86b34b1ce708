package dispatch

import (
	"context"

	"mailboxd/envelope"
	"mailboxd/internal/ledger"
)

// doubt holds a task that may have run before the ledger was lost: only a
// person can know. One that has a result file is held for that alone, whatever
// the verdict, until adoptHeld takes the result for its answer, which it does
// when all revisions of its id were met.
func (d *Dispatcher) doubt(t envelope.Task, v Verdict) Verdict {
	if !d.lost || t.ID == "" || shapeless(v.Findings.Kind()) {
		return v
	}
	if !v.Admit && d.Box.HasResult(t.ID) {
		v = Verdict{Admit: true, Findings: v.Findings.Warnings(), Terms: ledger.Terms{Deadline: t.Deadline}}
	}
	return withReasons(v, ledger.Recovered)
}

// metAgain ends the doubt once every line was met that was there when a lost
// ledger was begun anew.
func (d *Dispatcher) metAgain(ctx context.Context) error {
	if !d.lost {
		return nil
	}
	err := d.Ledger.Update(ctx, func(tx *ledger.Tx) error {
		if err := tx.MetAgain(); err != nil {
			return err
		}
		return tx.Log(event(ledger.Task{}, "ledger.recovered", nil))
	})
	if err != nil {
		return err
	}
	d.lost = false
	d.opts.Log.Warn().Msg("tasks from before the ledger was lost are met again; those without a result wait for release")
	return nil
}
