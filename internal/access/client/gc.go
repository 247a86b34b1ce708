package client

import "context"

// GCOptions say how to collect.
type GCOptions struct {
	DryRun bool `json:"dry_run,omitzero"` // count, and remove nothing
}

// Collected counts the removed data, or the data that would be removed.
type Collected struct {
	Runs     int   `json:"runs"`
	Clones   int   `json:"worktrees"`
	History  int   `json:"history"`
	Rejected int   `json:"rejected_days"`
	Bodies   int   `json:"requests"`
	Events   int   `json:"events"`
	Messages int   `json:"messages"`
	Files    int   `json:"artifacts"`
	Bytes    int64 `json:"bytes"` // of files; the ledger reuses its free space

	Left  int    `json:"left"`            // what could not be removed
	Cause string `json:"cause,omitempty"` // one of them, and why
}

// Collect has the daemon remove the data that is older than its retention.
func (c *Client) Collect(ctx context.Context, options GCOptions) (gone Collected, err error) {
	return gone, c.post(ctx, Base+"/gc", options, &gone)
}
