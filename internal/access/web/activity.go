package web

import (
	"context"
	"sync"
	"time"

	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/decisions/task"
)

// An activity counts the tasks that ended, by the minute. Its zero value has read no event.
type activity struct {
	mu     sync.Mutex // guards the rest
	last   int64      // the last event that was counted
	ok     map[int64]int
	failed map[int64]int
}

// span is how many minutes the chart of the first page shows.
const span = 60

// chart counts new events, and draws the last hour.
func (a *activity) chart(ctx context.Context, r *reader.Reader, now time.Time) (c chart, ok, failed int, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	query := reader.EventQuery{After: a.last}
	if a.ok == nil {
		a.ok, a.failed = map[int64]int{}, map[int64]int{}
	}
	if a.last == 0 { // nothing has happened in the last hour
		query.Since = now.Add(-span * time.Minute)
	}
	if err := r.Events(ctx, query, a.count); err != nil {
		return chart{}, 0, 0, err
	}
	first := now.Unix()/60 - span + 1
	for minute := range a.ok {
		if minute < first {
			delete(a.ok, minute)
		}
	}
	for minute := range a.failed {
		if minute < first {
			delete(a.failed, minute)
		}
	}
	var bars []bar
	for i := range int64(span) {
		one := bar{Good: float64(a.ok[first+i]), Bad: float64(a.failed[first+i])}
		ok, failed = ok+a.ok[first+i], failed+a.failed[first+i]
		bars = append(bars, one)
	}
	return newChart(bars, 300, 48), ok, failed, nil
}

// count counts an event.
func (a *activity) count(e client.Event) error {
	a.last = e.Seq
	minute := e.Time.Unix() / 60
	switch e.Kind {
	case task.KindTaskFinished:
		if status, _ := view.EventData(e.Data)["status"].(string); status == "ok" || status == "partial" {
			a.ok[minute]++
			return nil
		}
		a.failed[minute]++
	case task.KindTaskCancelled, task.KindTaskRejected:
		a.failed[minute]++
	}
	return nil
}
