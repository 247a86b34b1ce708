package owner

import (
	"fmt"
	"strings"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/fleet"
)

// A State is what commands show of a runner.
type State struct {
	Name         string        `json:"name"`
	Incarnation  string        `json:"incarnation,omitempty"`
	Version      string        `json:"version,omitempty"`
	Status       fleet.Status  `json:"status"`
	Reason       string        `json:"reason,omitempty"` // why it isn't ready
	Next         string        `json:"next,omitempty"`   // what a person can do
	Slots        int           `json:"slots"`
	Running      int           `json:"running"`
	Agents       []fleet.Agent `json:"agents"`
	Capabilities []string      `json:"capabilities,omitempty"`
	Sandbox      string        `json:"sandbox,omitempty"`
	Seen         time.Time     `json:"seen_at,omitzero"` // zero: not since the daemon began
	ClockOff     time.Duration `json:"clock_off_ns,omitzero"`
	Runs         []RunState    `json:"runs,omitempty"`
}

// A RunState is a run that a runner has.
type RunState struct {
	Task      envelope.ID `json:"task_id"`
	Agent     string      `json:"agent"`
	Attempt   int         `json:"attempt"`
	Token     fleet.Token `json:"token"`
	Began     time.Time   `json:"began_at,omitzero"` // zero: not known to have begun
	Reachable bool        `json:"reachable"`
}

// State returns how far a run is: assigned, running, or unreachable.
func (r RunState) State() string {
	switch {
	case !r.Reachable:
		return "unreachable"
	case r.Began.IsZero():
		return "assigned"
	}
	return "running"
}

// Runners returns the states of all runners, by name.
func (o *Owner) Runners() []State {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	core := o.core
	if core == nil {
		core = fleet.NewOwner(0, fleet.Options{})
		for _, k := range o.known {
			core.Know(k)
		}
	}
	all := []State{}
	for _, s := range core.States(now) {
		view := State{
			Name: s.Runner, Incarnation: s.Incarnation, Version: s.Offers.Version, Status: s.Status, Reason: s.Reason, Next: s.Next,
			Slots: s.Offers.Slots, Running: len(s.Runs), Agents: s.Offers.Agents, Capabilities: s.Offers.Capabilities, Sandbox: s.Offers.Sandbox,
			Seen: s.Seen, ClockOff: s.ClockOff,
		}
		if o.away != "" {
			view.Status = fleet.Unreachable
			view.Reason, view.Next = explainAway(o.away)
		}
		if why := o.files.hubFaults.of(s.Runner, now); why != "" && (view.Status == fleet.Ready || view.Status == fleet.Busy) {
			view.Status, view.Reason = fleet.Unavailable, "the hub keeps no files for it: "+why
			view.Next = "see the log of the hub, and whether its disk has space"
		}
		for _, a := range s.Runs {
			if one := o.runs[a.Token]; one != nil {
				view.Runs = append(view.Runs, RunState{
					Task: one.job.Task.ID, Agent: one.job.Task.Agent, Attempt: one.job.Attempt,
					Token: a.Token, Began: one.start, Reachable: !one.unreached,
				})
			}
		}
		all = append(all, view)
	}
	return all
}

// explainAway says why the hub isn't connected, and what to do. The failure may have a next step.
func explainAway(away string) (reason, next string) {
	reason, next, known := strings.Cut(away, "; ")
	if !known {
		next = "start the hub: mailboxd-hub serve"
	}
	return "the hub is not connected: " + reason, next
}

// Hub returns why the hub isn't connected; "" if it is.
func (o *Owner) Hub() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.away
}

// Drain has a runner get no more runs, or some again.
func (o *Owner) Drain(name string, on bool) error {
	known := false
	o.do(func() (duties []fleet.Duty) {
		duties, known = o.core.Drain(time.Now(), name, on)
		remember(o.known, o.core.States(time.Now()))
		return duties
	})
	if !known {
		return unknown(name, o.Hub())
	}
	if !on {
		o.order(name, fleet.Order{Wake: true})
	}
	return o.save()
}

// Remove forgets a runner, so that another machine may have its name. Its runs are lost.
func (o *Owner) Remove(name string) error {
	known := false
	o.do(func() (duties []fleet.Duty) {
		duties, known = o.core.Remove(time.Now(), name)
		remember(o.known, o.core.States(time.Now()))
		return duties
	})
	if !known {
		return unknown(name, o.Hub())
	}
	o.mu.Lock()
	link := o.link
	o.mu.Unlock()
	link.Reopen(name)
	return o.save()
}

func unknown(name, away string) error {
	if away != "" {
		return fmt.Errorf("the hub is not connected: %s", away)
	}
	return fmt.Errorf("no runner %q is known", name)
}

// Abandon gives up the runs of a task that its runner has. They are lost; an answer that comes later is kept for
// review only. Their outcomes say by whom.
func (o *Owner) Abandon(id envelope.ID, by string) error {
	found := false
	o.do(func() (duties []fleet.Duty) {
		for token, one := range o.runs {
			if one.job.Task.ID == id && !one.delivered {
				given := o.core.Abandon(token, by)
				found = found || len(given) > 0
				duties = append(duties, given...)
			}
		}
		return duties
	})
	if !found {
		return fmt.Errorf("no runner has task %s", id)
	}
	return nil
}
