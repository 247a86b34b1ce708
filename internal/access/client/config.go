package client

import "context"

// The kinds of a ConfigChange.
const (
	Added   = "added"
	Removed = "removed"
	Changed = "changed"
)

// Reload has the daemon read its configuration again. It returns what changed, or the
// mistakes of the file.
func (c *Client) Reload(ctx context.Context) (d ConfigDiff, err error) {
	return d, c.post(ctx, Base+"/reload", struct{}{}, &d)
}

// ConfigDiff returns how the configuration of the daemon differs from its file.
func (c *Client) ConfigDiff(ctx context.Context) (d ConfigDiff, err error) {
	return d, c.get(ctx, Base+"/config/diff", nil, &d)
}
