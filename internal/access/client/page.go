package client

import "context"

// JudgePage reports a request to the page of mailboxd web. The daemon judges its process, and
// records a refusal.
func (c *Client) JudgePage(ctx context.Context, r PageRequest) (v PageVerdict, err error) {
	r.Protocol = PageProtocol
	return v, c.post(ctx, Base+"/page", r, &v)
}
