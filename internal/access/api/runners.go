package api

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/operating/metrics"
)

// A RunnerTable lists and changes the runners of a daemon. Its zero value has none.
type RunnerTable struct {
	List    func() []client.Runner
	Drain   func(ctx context.Context, name string, on bool, by core.By) error
	Remove  func(ctx context.Context, name string, by core.By) error
	Abandon func(ctx context.Context, id envelope.ID, by core.By) error
}

// list returns the runners by name.
func (t RunnerTable) list() []client.Runner {
	if t.List == nil {
		return nil
	}
	return slices.SortedFunc(slices.Values(t.List()), func(a, b client.Runner) int { return cmp.Compare(a.Name, b.Name) })
}

// runnerRoutes answers requests about runners.
type runnerRoutes struct{ *Server }

func (d runnerRoutes) routes() []route {
	one := func(verb, about string, do func(context.Context, string, core.By) error) route {
		return route{"POST", "/runners/{name}/" + verb, about, "", client.ControlOptions{}, client.Runners{}, d.steer(verb, do)}
	}
	t := d.opts.Runners
	return []route{
		one("drain", "Gives a runner no new tasks until resume.",
			func(ctx context.Context, name string, by core.By) error { return t.Drain(ctx, name, true, by) }),
		one("resume", "Gives a drained runner tasks again.",
			func(ctx context.Context, name string, by core.By) error { return t.Drain(ctx, name, false, by) }),
		one("remove", "Forgets a runner and what it announced. Its runs are lost.",
			func(ctx context.Context, name string, by core.By) error { return t.Remove(ctx, name, by) }),
		{"POST", "/tasks/{id}/abandon", "Ends a task whose runner can't be reached, without waiting for it.", "",
			client.ControlOptions{}, client.Task{}, d.control("abandon", d.abandon)},
	}
}

func (d runnerRoutes) list(*http.Request) (any, error) {
	return client.Runners{Runners: slices.Concat([]client.Runner{}, d.opts.Runners.list())}, nil
}

// steer changes a runner for an authorized caller, and answers with all of them.
func (d runnerRoutes) steer(verb string, do func(context.Context, string, core.By) error) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		var request client.ControlOptions
		if err := read(r, &request); err != nil {
			return nil, err
		}
		if err := d.maySteer(r, "runners "+verb, ""); err != nil {
			return nil, err
		}
		name := r.PathValue("name")
		if !slices.ContainsFunc(d.opts.Runners.list(), func(r client.Runner) bool { return r.Name == name }) {
			return nil, bad("no runner has the name %q; mailboxd runners lists them", name)
		}
		ctx, stop, err := within(r.Context(), request.Timeout)
		if err != nil {
			return nil, err
		}
		defer stop()
		if err := late(ctx, do(ctx, name, core.By{Who: peerIn(ctx).name(), Reason: request.Reason})); err != nil {
			return nil, err
		}
		return d.list(r)
	}
}

func (d runnerRoutes) abandon(ctx context.Context, id envelope.ID, by core.By) error {
	if d.opts.Runners.Abandon == nil {
		return &client.Error{Kind: client.Conflict, Message: "abandon: the daemon has no runners; end the task with mailboxd cancel"}
	}
	return d.opts.Runners.Abandon(ctx, id, by)
}

// metrics are those of the runners; none without runners.
func (t RunnerTable) metrics() []metrics.Metric {
	all := t.list()
	if len(all) == 0 {
		return nil
	}
	gauge := func(name, help string) metrics.Metric {
		return metrics.Metric{Name: name, Type: metrics.Gauge, Help: help}
	}
	up := gauge("mailboxd_runner_up", "1 for a runner that gets tasks, by its status.")
	slots := gauge("mailboxd_runner_slots", "Runs that a runner can have at once.")
	running := gauge("mailboxd_runner_runs", "Runs that a runner has.")
	seen := gauge("mailboxd_runner_seen_timestamp_seconds", "When the last message of a runner came.")
	for _, r := range all {
		value := 0.0
		if r.Status == client.RunnerReady || r.Status == client.RunnerBusy {
			value = 1
		}
		up.Samples = append(up.Samples, sample(value, "runner", r.Name, "status", string(r.Status)))
		slots.Samples = append(slots.Samples, sample(float64(r.Slots), "runner", r.Name))
		running.Samples = append(running.Samples, sample(float64(r.Running), "runner", r.Name))
		if !r.Seen.IsZero() {
			seen.Samples = append(seen.Samples, sample(seconds(r.Seen), "runner", r.Name))
		}
	}
	return []metrics.Metric{up, slots, running, seen}
}
