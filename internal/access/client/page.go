package client

import (
	"context"
	"net/url"
)

// JudgePage reports a request to the page of mailboxd web. The daemon judges its process, and
// records a refusal.
func (c *Client) JudgePage(ctx context.Context, r PageRequest) (v PageVerdict, err error) {
	r.Protocol = PageProtocol
	return v, c.post(ctx, Base+"/page", r, &v)
}

// SendingStatement returns what the caller signs to send what has a digest, and the proof that the page needs for it.
func (c *Client) SendingStatement(ctx context.Context, digest string) (s Statement, err error) {
	return s, c.get(ctx, Base+"/sending", url.Values{"digest": {digest}}, &s)
}

// ProveSending has the daemon verify the signature of what the caller sends.
func (c *Client) ProveSending(ctx context.Context, one Sending) error {
	var signed Statement
	return c.post(ctx, Base+"/sending", one, &signed)
}

// JudgeGateway asks about a request to the gateway, or reports that one was refused.
func (c *Client) JudgeGateway(ctx context.Context, r GatewayRequest) (v PageVerdict, err error) {
	return v, c.post(ctx, Base+"/gateway", r, &v)
}
