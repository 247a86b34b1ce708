package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

// controls are the routes that change something.
func (d *Server) controls() []route {
	one := func(verb, about string, do func(context.Context, envelope.ID, core.By) error) route {
		return route{"POST", "/tasks/{id}/" + verb, about, "", client.ControlOptions{}, client.Task{}, d.control(verb, do)}
	}
	agent := func(verb, about string, do func(context.Context, string, core.By) error) route {
		return route{"POST", "/" + verb, about, "", client.AgentOptions{}, client.Pauses{}, d.steer(verb, do)}
	}
	e := d.engine
	return []route{
		one("cancel", "Ends a task; answers when nothing of its run is left.", e.Cancel),
		{"POST", "/tasks/{id}/cancel-tree", "Ends a task, and all open tasks below it; answers when nothing of their runs is left.", "", client.ControlOptions{}, client.Tree{}, d.cancelTree},
		one("hold", "Keeps a task from starting until release.", e.Hold),
		one("release", "Lets go of a task that an operator holds, or that may have run before the ledger was lost or restored; tries a callback again that failed. It is no approval.", e.Release),
		one("retry", "Runs a task again that ended in error, cancelled or rejected.", e.Retry),
		agent("pause", "Keeps an agent, or every agent, from starting anything until resume.", e.Pause),
		agent("resume", "Ends the pause of exactly that name.", e.Resume),
		agent("drain", "Pauses, and answers when nothing of it runs any more.", e.Drain),
		{"POST", "/reload", "Has the daemon read its configuration again; answers with what changed.", "", nil, client.ConfigDiff{}, d.reload},
		{"POST", "/gc", "Removes the data that is older than its retention, or only counts it.", "", client.GCOptions{}, client.Collected{}, d.collect},
		{"GET", "/config/diff", "How the configuration of the daemon differs from its file. Only for the user of the daemon.", "", nil, client.ConfigDiff{}, d.configDiff},
	}
}

// control changes a task and answers with the changed task.
func (d *Server) control(verb string, do func(context.Context, envelope.ID, core.By) error) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		id, err := idIn(r)
		if err == nil {
			err = d.controlTask(r, verb, id, do)
		}
		if errors.Is(err, errLate) {
			err = fmt.Errorf("%w; %s", err, d.left(r.Context(), id))
		}
		if err != nil {
			return nil, err
		}
		return d.records.Latest(r.Context(), id)
	}
}

// controlTask changes a task for an authorized caller.
func (d *Server) controlTask(r *http.Request, verb string, id envelope.ID, do func(context.Context, envelope.ID, core.By) error) error {
	var request client.ControlOptions
	if err := read(r, &request); err != nil {
		return err
	}
	if err := d.maySteer(r, verb, id); err != nil {
		return err
	}
	ctx, stop, err := within(r.Context(), request.Timeout)
	if err != nil {
		return err
	}
	defer stop()
	return late(ctx, do(ctx, id, core.By{Who: peerIn(ctx).name(), Reason: request.Reason}))
}

// cancelTree cancels a task and its descendants, and answers with their new states.
func (d *Server) cancelTree(r *http.Request) (any, error) {
	id, err := idIn(r)
	if err != nil {
		return nil, err
	}
	var cancelled []task.Task
	err = d.controlTask(r, "cancel-tree", id, func(ctx context.Context, id envelope.ID, by core.By) (err error) {
		cancelled, err = d.engine.CancelTree(ctx, id, by)
		return err
	})
	if errors.Is(err, errLate) {
		err = fmt.Errorf("%w; %s", err, d.stillOpen(r.Context(), id))
	}
	if err != nil {
		return nil, err
	}
	row, err := d.records.Latest(r.Context(), id)
	return client.Tree{Task: row, Cancelled: viewsOf(cancelled)}, err
}

// stillOpen lists the open ones of a task and its descendants.
func (d *Server) stillOpen(ctx context.Context, id envelope.ID) string {
	open, err := d.engine.Ledger.OpenBelow(ctx, id)
	if err != nil {
		return "what is still open is not known"
	}
	words := []string{}
	if row, err := d.records.Latest(ctx, id); err == nil && row.State != task.Done {
		words = append(words, fmt.Sprintf("%s (%s)", id, row.State))
	}
	for _, t := range open {
		words = append(words, fmt.Sprintf("%s (%s)", t.ID, t.State))
	}
	return "still open: " + cmp.Or(strings.Join(words, ", "), "none")
}

// steer pauses or resumes an agent, and answers with the paused agents.
func (d *Server) steer(verb string, do func(context.Context, string, core.By) error) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		var request client.AgentOptions
		if err := read(r, &request); err != nil {
			return nil, err
		}
		if err := d.maySteer(r, verb, ""); err != nil {
			return nil, err
		}
		ctx, stop, err := within(r.Context(), request.Timeout)
		if err != nil {
			return nil, err
		}
		defer stop()
		if err := late(ctx, do(ctx, request.Agent, core.By{Who: peerIn(ctx).name(), Reason: request.Reason})); err != nil {
			return nil, err
		}
		paused, err := d.engine.Ledger.Paused(r.Context())
		return client.Pauses{Paused: paused}, err
	}
}

// within limits how long a request may take; "" sets no limit.
func within(ctx context.Context, timeout string) (context.Context, context.CancelFunc, error) {
	if timeout == "" {
		return ctx, func() {}, nil
	}
	patience, err := time.ParseDuration(timeout)
	if err != nil || patience <= 0 {
		return nil, nil, bad("timeout %q is not a time such as 30s", timeout)
	}
	ctx, stop := context.WithTimeoutCause(ctx, patience, errLate)
	return ctx, stop, nil
}

// errLate says that a request began, and did not end in the given time.
var errLate = errors.New("it takes longer than it was given")

// late adds errLate to an error that the time limit caused.
func late(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, errLate) || !errors.Is(context.Cause(ctx), errLate) {
		return err
	}
	return fmt.Errorf("%w: %w", err, errLate)
}

// left lists the processes that are left of the run of a task.
func (d *Server) left(ctx context.Context, id envelope.ID) string {
	file, err := d.records.Details(ctx, id)
	if err != nil || len(file.Runs) == 0 {
		return "what is left of it is not known"
	}
	processes, err := d.opts.Survivors(file.Runs[len(file.Runs)-1].Dir)
	words := make([]string, len(processes))
	for i, p := range processes {
		words[i] = fmt.Sprintf("%d (%s)", p.PID, p.Command)
	}
	if err != nil || len(words) == 0 {
		return "none of its processes is left"
	}
	return "what is left of it: process " + strings.Join(words, ", ")
}

// reload has the daemon read its configuration again.
func (d *Server) reload(r *http.Request) (any, error) {
	if err := read(r, &struct{}{}); err != nil {
		return nil, err
	}
	if err := d.maySteer(r, "reload", ""); err != nil {
		return nil, err
	}
	return d.opts.Reload(), nil
}

// collect removes old data.
func (d *Server) collect(r *http.Request) (any, error) {
	var options client.GCOptions
	if err := read(r, &options); err != nil {
		return nil, err
	}
	if err := d.maySteer(r, "gc", ""); err != nil {
		return nil, err
	}
	gone, err := d.engine.Collect(r.Context(), options.DryRun)
	return client.Collected(gone), err
}

// configDiff compares the configuration of the daemon with its file.
func (d *Server) configDiff(r *http.Request) (any, error) {
	if p := peerIn(r.Context()); p.uid != os.Geteuid() {
		return nil, forbidden("%s may not read the configuration", p.name())
	}
	return d.opts.ConfigDiff(), nil
}
