package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

// A RouteError says why no decision can be made about a line or a task.
type RouteError struct{ Err error }

func (e *RouteError) Error() string { return e.Err.Error() }

func (e *RouteError) Unwrap() error { return e.Err }

// RouteLine returns the decision about a task line as things are now. It changes nothing. Errors:
// *RouteError if the line asks for no task, or its agent is not chosen here.
func (d *Dispatcher) RouteLine(ctx context.Context, line []byte) (jsontext.Value, error) {
	pieces := dialect.Read(line, d.Opts.Reading)
	if len(pieces) != 1 {
		return nil, &RouteError{errors.New("route line: write one task request")}
	}
	m, findings := pieces[0].Message, pieces[0].Findings
	t := m.Request
	switch {
	case findings.Refused():
		return nil, &RouteError{fmt.Errorf("route line: %s", findings.Refusals())}
	case t.ID == "":
		return nil, &RouteError{errors.New("route line: it asks for no task")}
	case t.Clutch.Routed():
		t.Agent, t.Routed = envelope.Everybody, true
	}
	return d.route(ctx, task.Task{ID: t.ID, Requester: t.Requester}, t)
}

// RouteTask returns the decision about a task that waits for the choice of its agent, as things
// are now. It changes nothing.
func (d *Dispatcher) RouteTask(ctx context.Context, id envelope.ID) (jsontext.Value, error) {
	row, err := d.Reader.NewestOpen(ctx, id)
	if err != nil {
		return nil, err
	}
	if !core.Unbound(row) {
		return nil, &RouteError{fmt.Errorf("route %s: it doesn't wait for the choice of its agent", id)}
	}
	row, t, _, err := d.Reader.Load(ctx, row.Seq)
	if err != nil {
		return nil, err
	}
	return d.route(ctx, row, t)
}

func (d *Dispatcher) route(ctx context.Context, row task.Task, t envelope.Task) (jsontext.Value, error) {
	if err := d.whenReady(ctx); err != nil {
		return nil, err
	}
	r, _, ok, err := store.Chooser{Reader: d.Reader}.Decide(ctx, row, t, d.steps.router.load, time.Now())
	if err != nil {
		return nil, fmt.Errorf("route %s: %w", row.ID, err)
	}
	if !ok {
		return nil, &RouteError{fmt.Errorf("route %s: routing.ainl is off", row.ID)}
	}
	return r.JSON()
}
