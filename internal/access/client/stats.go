package client

import (
	"context"
	"net/url"
	"time"
)

// Stats are sums over the tasks and runs that ended on some days, and the queues of now.
type Stats struct {
	Since  time.Time    `json:"since"` // the begin of the first day, in UTC
	Days   []DayStats   `json:"days"`  // by day, then by agent
	Queues []QueueStats `json:"queues"`
}

// DayStats are the sums of one agent on one day in UTC.
type DayStats struct {
	Day       string  `json:"day"`
	Agent     string  `json:"agent"`
	OK        int     `json:"ok"` // ended tasks, by their status
	Partial   int     `json:"partial"`
	Failed    int     `json:"error"`
	Cancelled int     `json:"cancelled"`
	Rejected  int     `json:"rejected"`
	Runs      int     `json:"runs"`
	Seconds   float64 `json:"run_seconds"`
	Tokens    int64   `json:"tokens"`
	USDCents  int64   `json:"usd_cents"`
	Unknown   int     `json:"runs_of_unknown_cost"`
}

// QueueStats are the tasks that wait for a slot of an agent.
type QueueStats struct {
	Agent  string    `json:"agent"`
	Queued int       `json:"queued"`
	Oldest time.Time `json:"oldest"` // when the oldest was accepted
}

// Stats returns the sums since a time.
func (c *Client) Stats(ctx context.Context, since time.Time) (s Stats, err error) {
	return s, c.get(ctx, Base+"/stats", url.Values{"since": {since.UTC().Format(time.RFC3339)}}, &s)
}
