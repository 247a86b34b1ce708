package owner

import (
	"crypto/rand"
	"errors"
	"slices"
	"time"

	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/schedule"
)

// A claim names a request for jobs that isn't answered yet.
type claim struct{ runner, id string }

// rooms are the pending claims, whose room the state machine knows. The mutex of the Owner guards them.
type rooms struct {
	claims   map[claim]func(fleet.Reply)
	unfit    unfit
	reserved map[string]int // room for runs of each agent that is taken by those without a runner
}

// claim takes a request for jobs.
func (o *Owner) claim(m fleet.Claim, answer func(fleet.Reply)) {
	var reply fleet.Reply
	var fits []int64
	isAnswered := false
	o.do(func() (duties []fleet.Duty) {
		reply, isAnswered, duties = o.core.Claim(time.Now(), m)
		reply.Settled = durable(reply.Settled, o.runs)
		if !isAnswered {
			o.claims[claim{m.Runner, m.ID}] = answer
			fits = o.unfit.take(o.files.roomOf(o.known[m.Runner], m))
		}
		return duties
	})
	o.costs(m.Report)
	if isAnswered {
		answer(reply)
		return
	}
	o.opts.Changed()
	if len(fits) > 0 {
		o.opts.Fits(fits)
	}
}

// endClaim ends a claim, and returns what answers it.
func (o *rooms) endClaim(d fleet.Duty, runs map[fleet.Token]*run) (send func()) {
	id := claim{d.Runner, d.Claim}
	answer := o.claims[id]
	if answer == nil {
		return func() {}
	}
	delete(o.claims, id)
	now := time.Now()
	for _, j := range d.Reply.Jobs {
		if one := runs[j.Token]; one != nil {
			one.sent = now
		}
	}
	return func() { answer(d.Reply) }
}

// A grant is room for a run of an agent at any of its runners.
type grant struct {
	agent string
	token fleet.Token // of the run that got it; "": none yet
	over  bool        // it was used or dropped
}

// Free reports whether a runner has room for a run of an agent.
func (o *Owner) Free(agent string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.hasRoom(o.core, agent, o.opts.Suits)
}

// Take takes that room; nil if there is none.
func (o *Owner) Take(agent string) any {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.hasRoom(o.core, agent, o.opts.Suits) {
		return nil
	}
	o.reserved[agent]++
	return &grant{agent: agent}
}

// hasRoom reports whether pending claims have room for one more run of an agent.
func (o *rooms) hasRoom(core *fleet.Owner, agent string, suits func(agent, runner string, has []string) bool) bool {
	return core != nil && core.HasRoom(time.Now(), agent, o.reserved[agent], func(k fleet.Known, _ fleet.Agent) bool {
		return suits(agent, k.Runner, k.Offers.Capabilities)
	})
}

// release ends the reservation of a grant.
func (o *rooms) release(p *grant) {
	if !p.over {
		p.over = true
		if o.reserved[p.agent]--; o.reserved[p.agent] <= 0 {
			delete(o.reserved, p.agent)
		}
	}
}

// Drop gives back a grant whose run isn't sent. It does nothing for one that was.
func (o *Owner) Drop(of any) {
	p, ok := of.(*grant)
	if !ok {
		return
	}
	dropped := false
	o.do(func() []fleet.Duty {
		o.release(p)
		one := o.runs[p.token]
		if one == nil || one.handed {
			return nil
		}
		dropped = true
		o.forget(one)
		return o.core.Unassign(time.Now(), one.token())
	})
	if dropped {
		o.opts.Changed()
	}
}

// Assign says which runner gets a run that has a grant.
func (o *Owner) Assign(of any, seq int64, j task.Job) (at task.Assignment, err error) {
	p, ok := of.(*grant)
	if !ok {
		return at, schedule.ErrNoRoom
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.release(p)
	if o.core == nil {
		return at, schedule.ErrNoRoom
	}
	needs, err := o.files.needsOf(j)
	if err != nil {
		return at, err
	}
	err = schedule.ErrNoRoom
	token := fleet.NewToken(o.epoch, seq, j.Revision, j.Attempt, rand.Text())
	terms := fleet.Terms{Idempotent: o.opts.Idempotent(needs.agent), Deadline: j.Deadline}
	a, ok := o.core.Assign(time.Now(), token, needs.agent, terms, func(k fleet.Known, offered fleet.Agent) bool {
		why, fits := o.files.fits(needs, k, offered)
		if why != "" {
			err = &schedule.UnfitError{Why: why}
		}
		return fits
	})
	if !ok {
		if _, unfit := errors.AsType[*schedule.UnfitError](err); unfit {
			o.unfit.add(needs, seq)
		}
		return at, err
	}
	o.unfit.remove(seq)
	at = task.Assignment{Runner: a.Runner, Incarnation: a.Incarnation, Token: string(token)}
	j.At = at
	one := newRun(j, seq)
	one.idempotent, p.token, o.runs[token] = a.Idempotent, token, one
	return at, nil
}

// Held says that a task that Assign refused is held from now on, or isn't any more. It reports whether a runner has
// room for its run already. Otherwise Fits says that later.
func (o *Owner) Held(seq int64, held bool) (room bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !held {
		o.unfit.remove(seq)
		return false
	}
	n, known := o.unfit.hold(seq)
	room = known && o.core != nil && o.core.HasRoom(time.Now(), n.agent, 0, func(k fleet.Known, offered fleet.Agent) bool {
		_, ok := o.files.fits(n, k, offered)
		return ok
	})
	if room {
		o.unfit.remove(seq)
	}
	return room || !known
}

// Bindings returns the digests of an agent at all runners that may have it, sorted. A plan names them.
func (o *Owner) Bindings(agent string) (digests []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, k := range o.known {
		if a, ok := k.Agent(agent); ok && o.opts.Suits(agent, k.Runner, k.Offers.Capabilities) {
			digests = append(digests, a.Digest)
		}
	}
	slices.Sort(digests)
	return slices.Compact(digests)
}
