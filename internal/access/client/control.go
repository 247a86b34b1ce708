package client

import (
	"context"
	"net/url"

	"mailboxd/envelope"
)

// Cancel ends a task. It returns when nothing of its run is left, or says what
// is once the request's timeout is over.
func (c *Client) Cancel(ctx context.Context, id envelope.ID, w ControlOptions) (Task, error) {
	return c.change(ctx, id, "cancel", w)
}

// CancelTree ends a task as Cancel does, and all open tasks below it.
func (c *Client) CancelTree(ctx context.Context, id envelope.ID, w ControlOptions) (t Tree, err error) {
	return t, c.post(ctx, taskPath(id, "/cancel-tree"), w, &t)
}

// OpenBelow lists the open tasks below a task, a task before those below it.
func (c *Client) OpenBelow(ctx context.Context, id envelope.ID) ([]Task, error) {
	var page Page
	err := c.get(ctx, taskPath(id, "/below"), nil, &page)
	return page.Tasks, err
}

// Hold keeps a task from starting until Release.
func (c *Client) Hold(ctx context.Context, id envelope.ID, w ControlOptions) (Task, error) {
	return c.change(ctx, id, "hold", w)
}

// Release lets go of a task that was held by Hold, or that may have run before
// the ledger was lost. It is no approval.
func (c *Client) Release(ctx context.Context, id envelope.ID, w ControlOptions) (Task, error) {
	return c.change(ctx, id, "release", w)
}

// Retry has a task run again that ended in error, cancelled or rejected.
func (c *Client) Retry(ctx context.Context, id envelope.ID, w ControlOptions) (Task, error) {
	return c.change(ctx, id, "retry", w)
}

// Statement returns what the caller signs to decide about a task: "approved" or "denied", under
// a name, or "" for the name that is asked. If the digest of the question that a person saw is named,
// another question is an error of the kind Conflict, which says what has changed.
func (c *Client) Statement(ctx context.Context, id envelope.ID, decision, as, seen string) (s Statement, err error) {
	query := url.Values{"decision": {decision}}
	if seen != "" {
		query.Set("seen", seen)
	}
	if as != "" {
		query.Set("as", as)
	}
	return s, c.get(ctx, taskPath(id, "/statement"), query, &s)
}

// Approve lets a task that waits for a person go on.
func (c *Client) Approve(ctx context.Context, id envelope.ID, w Decision) (Task, error) {
	return c.change(ctx, id, "approve", w)
}

// Deny ends a task that waits for a person.
func (c *Client) Deny(ctx context.Context, id envelope.ID, w Decision) (Task, error) {
	return c.change(ctx, id, "deny", w)
}

// change returns the latest revision of the task as it is then.
func (c *Client) change(ctx context.Context, id envelope.ID, verb string, request any) (t Task, err error) {
	return t, c.post(ctx, taskPath(id, "/"+verb), request, &t)
}

// Pause keeps an agent from starting anything until Resume.
func (c *Client) Pause(ctx context.Context, w AgentOptions) (Pauses, error) {
	return c.steer(ctx, "pause", w)
}

// Resume ends the pause of exactly that agent.
func (c *Client) Resume(ctx context.Context, w AgentOptions) (Pauses, error) {
	return c.steer(ctx, "resume", w)
}

// Drain pauses an agent and returns when nothing of it runs any more.
func (c *Client) Drain(ctx context.Context, w AgentOptions) (Pauses, error) {
	return c.steer(ctx, "drain", w)
}

func (c *Client) steer(ctx context.Context, verb string, w AgentOptions) (p Pauses, err error) {
	return p, c.post(ctx, Base+"/"+verb, w, &p)
}
