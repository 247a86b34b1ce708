package client

import (
	"context"
	"net/url"
	"time"

	"mailboxd/envelope"
)

// A Runner is what a daemon knows of a program on another machine that runs agents for it.
type Runner struct {
	Name   string       `json:"name"`
	Status RunnerStatus `json:"status"`
	Reason string       `json:"reason,omitempty"` // why it gets no tasks
	Next   string       `json:"next,omitempty"`   // what to do about it

	SSH          string        `json:"ssh,omitempty"` // the destination, if the daemon reaches it with ssh
	Version      string        `json:"version,omitempty"`
	Incarnation  string        `json:"incarnation,omitempty"` // of its state
	Slots        int           `json:"slots"`
	Running      int           `json:"running"`
	Agents       []RunnerAgent `json:"agents"`
	Capabilities []string      `json:"capabilities,omitempty"`
	Sandbox      string        `json:"sandbox,omitempty"`
	Seen         time.Time     `json:"seen,omitzero"` // when its last message came
	ClockOff     float64       `json:"clock_off_seconds,omitempty"`
	Runs         []RunnerRun   `json:"runs,omitempty"`
}

// A RunnerStatus says whether a runner gets tasks.
type RunnerStatus string

// The statuses of runners.
const (
	RunnerReady       RunnerStatus = "ready"
	RunnerBusy        RunnerStatus = "busy"        // it has no free slot
	RunnerDraining    RunnerStatus = "draining"    // it gets no new tasks
	RunnerUnreachable RunnerStatus = "unreachable" // it sends nothing; its runs may go on
	RunnerUnavailable RunnerStatus = "unavailable" // it may not or can't take tasks
)

// A RunnerAgent is an agent that a runner has.
type RunnerAgent struct {
	ID             string `json:"id"`
	Digest         string `json:"digest"` // of its command, program and the rest that a person agrees to
	Concurrency    int    `json:"concurrency,omitempty"`
	MaxSensitivity string `json:"max_sensitivity,omitempty"`
}

// A RunnerRun is a run that a runner has.
type RunnerRun struct {
	Task  envelope.ID `json:"task"`
	Agent string      `json:"agent"`
	State string      `json:"state"`
	Since time.Time   `json:"since,omitzero"`
}

// Runners are the runners of a daemon.
type Runners struct {
	Runners []Runner `json:"runners"` // by name
}

// Runners lists the runners that the daemon knows.
func (c *Client) Runners(ctx context.Context) ([]Runner, error) {
	var all Runners
	err := c.get(ctx, Base+"/runners", nil, &all)
	return all.Runners, err
}

// DrainRunner gives a runner no new tasks until ResumeRunner.
func (c *Client) DrainRunner(ctx context.Context, name string, w ControlOptions) (Runners, error) {
	return c.steerRunner(ctx, name, "drain", w)
}

// ResumeRunner gives a drained runner tasks again.
func (c *Client) ResumeRunner(ctx context.Context, name string, w ControlOptions) (Runners, error) {
	return c.steerRunner(ctx, name, "resume", w)
}

// RemoveRunner forgets a runner and what it announced. Its runs are lost.
func (c *Client) RemoveRunner(ctx context.Context, name string, w ControlOptions) (Runners, error) {
	return c.steerRunner(ctx, name, "remove", w)
}

// Abandon ends a task whose runner can't be reached, without waiting for it.
func (c *Client) Abandon(ctx context.Context, id envelope.ID, w ControlOptions) (Task, error) {
	return c.change(ctx, id, "abandon", w)
}

// steerRunner answers with the runners as they are then.
func (c *Client) steerRunner(ctx context.Context, name, verb string, w ControlOptions) (all Runners, err error) {
	return all, c.post(ctx, Base+"/runners/"+url.PathEscape(name)+"/"+verb, w, &all)
}
