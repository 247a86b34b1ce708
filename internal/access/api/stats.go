package api

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
)

func (b *Records) stats(r *http.Request) (any, error) {
	since, err := time.Parse(time.RFC3339, r.URL.Query().Get("since"))
	if err != nil {
		return nil, bad("since: %w", err)
	}
	return b.Stats(r.Context(), since)
}

// Stats returns sums over the tasks and runs that ended since a time.
func (b *Records) Stats(ctx context.Context, since time.Time) (client.Stats, error) {
	s := client.Stats{Since: since.UTC(), Days: []client.DayStats{}, Queues: []client.QueueStats{}}
	ended, err := b.Ledger.EndedSince(ctx, since)
	if err != nil {
		return s, err
	}
	ran, err := b.Ledger.RanSince(ctx, since)
	if err != nil {
		return s, err
	}
	days := map[[2]string]*client.DayStats{}
	of := func(day, agent string) *client.DayStats {
		if days[[2]string{day, agent}] == nil {
			days[[2]string{day, agent}] = &client.DayStats{Day: day, Agent: agent}
		}
		return days[[2]string{day, agent}]
	}
	for _, e := range ended {
		*statusCount(of(e.Day, e.Agent), e.Status) += e.Tasks
	}
	for _, n := range ran {
		day := of(n.Day, n.Agent)
		day.Runs, day.Seconds, day.Tokens, day.USDCents, day.Unknown = n.Runs, n.Took.Seconds(), n.Tokens, n.USDCents, n.Unknown
	}
	for _, day := range days {
		s.Days = append(s.Days, *day)
	}
	slices.SortFunc(s.Days, func(a, b client.DayStats) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Agent, b.Agent))
	})
	queued, err := b.Ledger.QueuedTasksByAgent(ctx)
	for _, q := range queued {
		s.Queues = append(s.Queues, client.QueueStats{Agent: q.Agent, Queued: q.Tasks, Oldest: q.Oldest})
	}
	return s, err
}

// statusCount returns the count of a status.
func statusCount(day *client.DayStats, status envelope.Status) *int {
	switch status {
	case envelope.OK:
		return &day.OK
	case envelope.Partial:
		return &day.Partial
	case envelope.Rejected:
		return &day.Rejected
	case envelope.Stopped:
		return &day.Cancelled
	}
	return &day.Failed
}
