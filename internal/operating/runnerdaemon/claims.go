package runnerdaemon

import (
	"cmp"
	"context"
	"crypto/rand"
	"time"

	"mailboxd/internal/decisions/fleet"
)

// answerTime is how long an answer may take beyond what the owner may wait for jobs.
const answerTime = 5 * time.Second

// claim reports to the owner, and takes the jobs of its answers, until ctx ends. An idle runner sends one
// message in fleet.ClaimWait.
func (d *daemon) claim(ctx, runs context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-d.linked:
	}
	defer d.asking.Wait()
	said, pause := "", firstPause
	d.setGreet()
	for ctx.Err() == nil {
		err := d.exchange(ctx, runs)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			said, pause = "", firstPause
			continue
		case said != err.Error():
			said = err.Error()
			d.Log.Warn().Err(err).Msg("owner not reached; trying again")
		}
		wait(ctx, pause, d.changed)
		pause = min(2*pause, mostPause)
	}
	return ctx.Err()
}

func (d *daemon) setGreet() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.greet = true
}

// exchange sends one report, and does what the answer says.
func (d *daemon) exchange(ctx, runs context.Context) error {
	if err := d.offers.refresh(ctx, d.announcement, d.worktrees); err != nil {
		return err
	}
	d.hasNews() // this report has them
	d.mu.Lock()
	greet := d.greet || d.announced != d.offers.text
	d.mu.Unlock()
	if greet {
		if err := d.hello(ctx, runs); err != nil {
			return err
		}
	}
	free, by := d.free()
	if free == 0 || d.beatDue() {
		if err := d.beat(ctx, runs); err != nil {
			return err
		}
	}
	if free == 0 {
		wait(ctx, fleet.BeatEvery, d.changed) // or until a slot is free
		return nil
	}
	sent, answered := clock().Boot, make(chan answer, 1)
	d.asking.Go(func() { answered <- d.ask(ctx, runs, min(free, fleet.MaxJobs), by) })
	for {
		select {
		case a := <-answered:
			if a.err == nil && !a.moved {
				wait(ctx, fleet.ClaimWait-(clock().Boot-sent), d.changed) // an idle runner sends one message in this time
			}
			return a.err
		case <-d.changed:
			if _, now := d.free(); grew(by, now) {
				return nil // the next claim takes the place of this one
			}
			if d.hasNews() { // a claim in its place could lose a job that is on its way
				if err := d.beat(ctx, runs); err != nil {
					return err
				}
			}
		}
	}
}

// grew reports whether an agent takes jobs that took none.
func grew(before, now map[string]int) bool {
	for id, n := range now {
		if n > 0 && before[id] == 0 {
			return true
		}
	}
	return false
}

// An answer is what came of a claim.
type answer struct {
	moved bool // it had jobs, or something about tokens
	err   error
}

// ask sends a claim and takes the jobs of its answer.
func (d *daemon) ask(ctx, runs context.Context, free int, by map[string]int) answer {
	waiting, stop := context.WithTimeout(ctx, fleet.ClaimWait+answerTime)
	defer stop()
	full := d.diskFull()
	d.mu.Lock()
	m := d.machine.Claim(clock(), d.reportNow(full), rand.Text(), free, by)
	d.mu.Unlock()
	reply, err := d.link.Claim(waiting, m)
	if err != nil {
		return answer{err: err}
	}
	d.apply(runs, reply)
	return answer{moved: len(reply.Jobs)+len(reply.Void)+len(reply.Cancel)+len(reply.Settled) > 0 || reply.Hello}
}

// hello announces the runner.
func (d *daemon) hello(ctx, runs context.Context) error {
	waiting, stop := d.spells.within(ctx, fleet.ClaimWait)
	defer stop()
	reply, err := d.link.Hello(waiting, fleet.Hello{Report: d.report(), Announcement: d.offers.now})
	if err != nil {
		return err
	}
	d.mu.Lock()
	d.greet, d.announced = false, d.offers.text
	d.mu.Unlock()
	d.apply(runs, reply)
	return nil
}

// beatDue reports whether the leases of runs are to be renewed. The answer to a claim may come after the next one is due.
func (d *daemon) beatDue() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.machine.Busy() > 0 && bootNow()-d.beaten >= fleet.BeatEvery
}

// beat sends a sign of life.
func (d *daemon) beat(ctx, runs context.Context) error {
	waiting, stop := d.spells.within(ctx, fleet.ClaimWait)
	defer stop()
	sent := bootNow()
	reply, err := d.link.Beat(waiting, fleet.Beat{Report: d.report()})
	if err != nil {
		return err
	}
	d.mu.Lock()
	d.beaten = sent
	d.mu.Unlock()
	d.apply(runs, reply)
	return nil
}

// apply does what the answer to a report says.
func (d *daemon) apply(runs context.Context, reply fleet.Reply) {
	changed := false
	d.advance(runs, func(m *fleet.Runner) []fleet.Step {
		if reply.Epoch < m.Epoch() || reply.Session != d.session {
			return nil
		}
		d.greet = d.greet || reply.Hello
		if why := cmp.Or(reply.Refused, reply.Drain); d.drain != why {
			d.drain, changed = why, true
			d.Log.Warn().Str("reason", why).Msg("the owner changed whether this runner gets jobs")
		}
		return m.Reply(clock(), reply)
	})
	if changed {
		noteNoJobs(d)
	}
}

// order does what a hint says. It must not block.
func (d *daemon) order(o fleet.Order) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if o.Epoch < d.machine.Epoch() {
		return
	}
	if one := d.runs[o.Cancel]; o.Cancel != "" && one != nil {
		d.hints.Go(func() {
			d.advance(d.ofRuns, func(m *fleet.Runner) []fleet.Step { return m.Cancel(o.Cancel, "the owner cancelled it") })
		})
	}
	if one := d.runs[o.Follow]; o.Follow != "" && one != nil {
		one.follow = bootNow() + min(o.For, time.Hour)
	}
	if o.Wake {
		d.news = true
		d.look()
		d.spells.over()
	}
}
