package owner

import (
	"context"
	"errors"
	"time"

	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/running/carrier"
	"mailboxd/internal/testtools/fault"
)

// done takes the outcome of a run. It is answered once the end of the run is durable.
func (o *Owner) done(m fleet.Done, answer func(fleet.DoneReply)) {
	o.mu.Lock()
	one := o.runs[m.Token]
	ruling, reply := o.core.Done(m)
	if ruling == fleet.RuleCommit && one != nil {
		one.hasBegun(time.Now())
		one.answer = answer
	}
	o.mu.Unlock()
	switch {
	case ruling == fleet.RuleCommit && one != nil:
		o.background(func(ctx context.Context) { o.fetch(ctx, one, m) })
	case ruling == fleet.RuleFence:
		if !o.busy.enter(m.Runner) {
			return
		}
		o.background(func(ctx context.Context) {
			defer o.busy.leave(m.Runner)
			reply, kept := o.fences.keep(ctx, m, reply)
			if kept {
				o.mu.Lock()
				o.pasts.keep(m.Token, m.Runner, fleet.PastFenced)
				o.mu.Unlock()
			}
			answer(reply)
		})
	default:
		answer(reply)
	}
}

// fetch brings the files of an outcome, and delivers it. After an error the runner sends the outcome again.
func (o *Owner) fetch(ctx context.Context, one *run, m fleet.Done) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	o.mu.Lock()
	one.giveUp = stop
	if one.ended {
		stop()
	}
	o.mu.Unlock()
	outcome, err := o.files.outcome(ctx, one, m)
	fault.Point("outcome-fetched")
	o.mu.Lock()
	if err == nil && !one.ended {
		one.deliver(outcome)
	}
	if err == nil || one.ended {
		o.mu.Unlock()
		return
	}
	answer := one.answer
	one.answer = nil
	reply := o.core.Unsettled(m.Token)
	reply.Missing = errors.Is(err, carrier.ErrMissing)
	o.mu.Unlock()
	o.opts.Log.Warn().Err(err).Str("runner", m.Runner).Str("task_id", string(one.job.Task.ID)).Msg("outcome of a run not taken yet")
	if answer != nil {
		answer(reply)
	}
}
