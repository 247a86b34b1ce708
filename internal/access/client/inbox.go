package client

import (
	"context"

	"mailboxd/envelope"
)

// Claim takes the oldest task that waits for an agent. Its Task is nil when there
// is none.
func (c *Client) Claim(ctx context.Context, w Claim) (got Claimed, err error) {
	return got, c.post(ctx, Base+"/claim", w, &got)
}

// Renew has a lease last longer.
func (c *Client) Renew(ctx context.Context, id envelope.ID, w Renewal) (r Renewed, err error) {
	return r, c.post(ctx, taskPath(id, "/renew"), w, &r)
}

// Submit answers a task that waits, and returns it as it is then: done, or in
// review. A daemon that takes the answer for none says BadRequest, and one where
// somebody else has claimed the task, or it does not wait any more, Conflict.
func (c *Client) Submit(ctx context.Context, id envelope.ID, w Submission) (t Task, err error) {
	return t, c.post(ctx, taskPath(id, "/submit"), w, &t)
}
