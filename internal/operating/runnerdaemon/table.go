package runnerdaemon

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/running/agent"
)

// A run is a token that may begin, or has begun.
type run struct {
	token   fleet.Token
	job     fleet.Job
	end     context.CancelCauseFunc // ends the run with a reason
	ctx     context.Context
	settled chan struct{} // closed when the owner has the outcome

	// The fields below are guarded by table.mu.
	runID     string
	started   bool // its command may have been started
	received  *agent.Received
	artifacts []string      // the digests of those that stay until it is settled
	follow    time.Duration // until when output is sent, on the boot clock
}

// A table has the state machine of the runner, and the runs of its tokens.
type table struct {
	changed chan struct{} // has an element when there may be something to report, or a free slot

	mu        sync.Mutex
	machine   *fleet.Runner
	runs      map[fleet.Token]*run
	drain     string        // why there are no jobs
	greet     bool          // a hello is due
	news      bool          // the owner is to know something at once
	announced string        // what the last hello said
	beaten    time.Duration // when the last beat was sent, on the boot clock
}

// wake has the runner report at once. The caller doesn't hold mu.
func (t *table) wake() {
	t.mu.Lock()
	t.news = true
	t.mu.Unlock()
	t.look()
}

// look has the runner look whether it takes more jobs, or has news.
func (t *table) look() {
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// hasNews reports whether the owner is to know something at once.
func (t *table) hasNews() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	news := t.news
	t.news = false
	return news
}

// bootNow returns the time since boot, with sleep.
func bootNow() time.Duration {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return 0 // can't happen: every supported kernel has this clock
	}
	return time.Duration(now.Nano())
}

func clock() fleet.Clock { return fleet.Clock{Boot: bootNow(), Wall: time.Now()} }

// newRun returns the run of a token.
func newRun(runs context.Context, j fleet.Job) *run {
	one := &run{token: j.Token, job: j, settled: make(chan struct{})}
	one.ctx, one.end = context.WithCancelCause(runs)
	return one
}

// report says what the runner has.
func (d *daemon) report() fleet.Report {
	full := d.diskFull()
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.reportNow(full)
}

// reportNow is report for a caller that holds mu.
func (d *daemon) reportNow(full string) fleet.Report {
	r := d.machine.Report(clock())
	r.Runner, r.Incarnation, r.Journal, r.DiskFull = d.name, d.journal.incarnation, d.journal.count(), full
	return r
}

// free returns how many jobs the runner takes now, and how many of each agent.
func (d *daemon) free() (all int, by map[string]int) {
	if d.diskFull() != "" {
		return 0, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	all, by = max(0, d.Config.Slots-d.machine.Busy()), map[string]int{}
	for _, b := range d.Config.Bindings() {
		by[b.ID] = max(1, b.Concurrency)
	}
	for token, one := range d.runs {
		if _, state := d.machine.Holds(token); state != fleet.Ended {
			by[one.job.Agent]--
		}
	}
	some := false
	for id, n := range by {
		by[id] = max(0, min(n, all))
		some = some || by[id] > 0
	}
	if !some || d.drain != "" {
		return 0, nil
	}
	return all, by
}

// tick ends what ends at a time, until ctx ends. The error is that of a program that ends without the hub.
func (d *daemon) tick(ctx, runs context.Context) error {
	swept, removed, linked := time.Now(), time.Now(), time.Now()
	for sleep(ctx, time.Second) {
		if d.isLinked() && d.link.Connected() {
			linked = time.Now()
		}
		if d.Without > 0 && time.Since(linked) > d.Without {
			return fmt.Errorf("the hub was not there for %v", d.Without)
		}
		if time.Since(swept) >= 24*time.Hour {
			swept = time.Now()
			d.work.Go(d.sweep) // a lease doesn't wait for it
		}
		if time.Since(removed) >= artifactsEvery {
			removed = time.Now()
			d.work.Go(func() { leftFiles{d}.removeArtifacts(time.Now().Add(-artifactsEvery)) })
		}
		d.mu.Lock()
		steps := d.machine.Tick(clock())
		d.mu.Unlock()
		d.do(runs, steps)
	}
	return nil
}

// advance tells the state machine something, and does what follows.
func (d *daemon) advance(runs context.Context, tell func(*fleet.Runner) []fleet.Step) {
	d.mu.Lock()
	steps := tell(d.machine)
	d.mu.Unlock()
	d.do(runs, steps)
}

// do does the steps of the state machine. What writes or waits does so beside the caller, so that many writes
// share a sync; the epoch of an owner is durable before the owner is obeyed.
func (d *daemon) do(runs context.Context, steps []fleet.Step) {
	for _, s := range steps {
		switch s.Kind {
		case fleet.StepEpoch:
			d.insist(runs, "epoch of the owner not written", func() error {
				return d.journal.set("epoch", strconv.FormatInt(s.Epoch, 10))
			})
		case fleet.StepWrite:
			d.write(runs, s)
		case fleet.StepStart:
			d.endUnstarted(d.run(s.Token))
		case fleet.StepLease:
			d.setLease(s.Token, s.Until)
		case fleet.StepEnd:
			if one := d.run(s.Token); one != nil {
				one.end(errors.New(s.Why))
				d.endUnstarted(one)
			}
		case fleet.StepSend:
			if one := d.run(s.Token); one != nil {
				d.work.Go(func() { d.deliver(one) })
			}
		case fleet.StepForget:
			d.work.Go(func() { d.forget(s.Token) })
		}
	}
}

// write writes a state of a token, and says so to the state machine.
func (d *daemon) write(runs context.Context, s fleet.Step) {
	wrote := func(m *fleet.Runner) []fleet.Step { return m.Wrote(clock(), s.Token, s.State) }
	switch s.State {
	case fleet.Offered:
		one := newRun(runs, s.Job)
		d.mu.Lock()
		d.runs[s.Token] = one
		d.mu.Unlock()
		d.work.Go(func() {
			if d.offered(one) {
				d.advance(runs, wrote)
			}
		})
	case fleet.Began:
		one := d.run(s.Token)
		d.work.Go(func() {
			if d.insist(runs, "start of a run not written", func() error { return d.noteBegan(one) }) {
				d.advance(runs, wrote)
			}
		})
	case fleet.Voided:
		d.work.Go(func() {
			if d.insist(runs, "tombstone not written", func() error { return d.noteVoided(s.Token) }) {
				d.advance(runs, wrote)
				d.wake()
			}
		})
	case fleet.Ended: // finish has written it with the outcome
		d.advance(runs, wrote)
	}
}

// insist repeats a write until it succeeds. It returns false if the program ends before.
func (d *daemon) insist(runs context.Context, failure string, write func() error) bool {
	for {
		err := write()
		if err == nil {
			return true
		}
		d.Log.Error().Err(err).Msg(failure + "; trying again")
		if !sleep(runs, readAgain) {
			return false
		}
	}
}

// run returns the run of a token; nil for none.
func (d *daemon) run(token fleet.Token) *run {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.runs[token]
}

// drop removes the run of a token, which has ended or never begins, and returns it; nil for none.
func (t *table) drop(token fleet.Token) *run {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.runs[token]
	if delete(t.runs, token); one != nil {
		one.end(nil) // or its context stays as long as the program
	}
	return one
}
