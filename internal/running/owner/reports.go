package owner

import (
	"context"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/fleet"
)

// hello takes the announcement of a runner. It is answered when it is durable and the runner has its buckets.
func (o *Owner) hello(m fleet.Hello, answer func(fleet.Reply)) {
	var reply fleet.Reply
	var unfit []int64
	o.do(func() []fleet.Duty {
		var duties []fleet.Duty
		reply, duties = o.core.Hello(time.Now(), m)
		reply.Settled = durable(reply.Settled, o.runs)
		before := o.known[m.Runner].Offers
		remember(o.known, o.core.States(time.Now()))
		unfit = o.unfit.unbound(before, o.known[m.Runner].Offers)
		return duties
	})
	o.costs(m.Report)
	if len(unfit) > 0 {
		o.opts.Fits(unfit)
	}
	if !o.busy.enter(m.Runner) {
		return
	}
	o.background(func(ctx context.Context) {
		defer o.busy.leave(m.Runner)
		err := o.link.Ensure(ctx, m.Runner)
		o.files.hubFaults.note(m.Runner, err)
		if err == nil {
			err = o.save()
		}
		if err != nil {
			o.opts.Log.Warn().Err(err).Str("runner", m.Runner).Msg("announcement of a runner not kept")
			return // it says hello again
		}
		answer(reply)
	})
}

// beat takes the sign of life of a runner with runs.
func (o *Owner) beat(m fleet.Beat, answer func(fleet.Reply)) {
	var reply fleet.Reply
	o.do(func() (duties []fleet.Duty) {
		reply, duties = o.core.Beat(time.Now(), m)
		reply.Settled = durable(reply.Settled, o.runs)
		return duties
	})
	o.costs(m.Report)
	answer(reply)
}

// durable returns the tokens whose end is in the ledger: no run waits for it.
func durable(settled []fleet.Token, runs map[fleet.Token]*run) []fleet.Token {
	return slices.DeleteFunc(settled, func(t fleet.Token) bool { return runs[t] != nil })
}

// costs takes from a report which runs have begun, and what they have spent.
func (o *Owner) costs(p fleet.Report) {
	for _, said := range p.Runs {
		o.mu.Lock()
		one := o.runs[said.Token]
		if one == nil || one.at.Runner != p.Runner || said.State == fleet.Offered {
			o.mu.Unlock()
			continue
		}
		one.hasBegun(time.Now())
		changed := said.Cost != one.cost
		one.cost = said.Cost
		changed = changed && one.job.Meter != nil && !one.counting
		one.counting = one.counting || changed
		o.mu.Unlock()
		if changed {
			o.background(func(context.Context) { one.count(o) })
		}
	}
}

// count counts what a run has spent, until nothing is new.
func (one *run) count(o *Owner) {
	for counted := (envelope.Cost{}); ; {
		o.mu.Lock()
		cost := one.cost
		one.counting = cost != counted
		o.mu.Unlock()
		if cost == counted {
			return
		}
		o.spend(one, cost)
		counted = cost
	}
}

// past says how a run ended that isn't open. The state machine calls it with mu held.
func (o *Owner) past(token fleet.Token, runner string) fleet.Past {
	if past, known := o.pasts[ended{token, runner}]; known {
		return past
	}
	if one := o.runs[token]; one != nil && one.at.Runner == runner {
		return fleet.PastOpen // until then its runner keeps the answer, or a daemon that is killed begins the run again
	}
	past, err := o.opts.Past(token, runner)
	if err != nil {
		o.opts.Log.Warn().Err(err).Msg("end of a run not read from the ledger")
		return fleet.PastUnread
	}
	o.pasts.keep(token, runner, past)
	return past
}

// mostPasts limits how many ends are kept in memory.
const mostPasts = 10_000

// pasts are how runs ended that runners may still list.
type pasts map[ended]fleet.Past

// An ended is a run of a runner that has ended.
type ended struct {
	token  fleet.Token
	runner string
}

// keep keeps how a run ended.
func (p pasts) keep(token fleet.Token, runner string, past fleet.Past) {
	if len(p) >= mostPasts {
		clear(p) // the ledger has them
	}
	if past != fleet.PastUnknown && past != fleet.PastOpen {
		p[ended{token, runner}] = past
	}
}
