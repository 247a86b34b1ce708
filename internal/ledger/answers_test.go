package ledger_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/task"
)

// answerer has the questions that the Reader of the ledger had in every version.
type answerer interface {
	Task(ctx context.Context, seq int64) (task.Task, error)
	Raw(ctx context.Context, seq int64) ([]byte, error)
	Result(ctx context.Context, seq int64) ([]byte, error)
	Withheld(ctx context.Context, seq int64) ([]byte, error)
	Runs(ctx context.Context, seq int64) ([]task.Run, error)
	Approvals(ctx context.Context, seq int64) ([]task.Consent, error)
	Delivery(ctx context.Context, seq int64) (task.Delivery, error)
	Conversation(ctx context.Context, seq int64) (task.Conversation, bool, error)
	About(ctx context.Context, seq int64) ([]task.Message, error)
	Children(ctx context.Context, seq int64) ([]envelope.ID, error)
	Story(ctx context.Context, id envelope.ID, limit int) ([]task.Event, error)
	Events(ctx context.Context, id envelope.ID, after int64, limit int) ([]task.Event, error)
	LastEvent(ctx context.Context) (int64, error)
	Balances(ctx context.Context, day string) ([]task.Balance, error)
	Paused(ctx context.Context) ([]string, error)
	Lost(ctx context.Context) (bool, error)
	CountOpen(ctx context.Context) (map[task.State]int, error)
	Due(ctx context.Context, after int64, limit int) ([]task.Message, error)
	Cancelled(ctx context.Context) ([]task.Message, error)
	WithOpenNotifications(ctx context.Context) ([]int64, error)
	ThreadTasks(ctx context.Context, thread string) ([]int64, error)
	TraceTasks(ctx context.Context, trace string) ([]int64, error)
	Trace(ctx context.Context, trace string) ([]task.Message, error)
	Unsettled(ctx context.Context, after int64, limit int) ([]task.Task, error)
}

// answersOf returns the answers of a ledger of a few tasks as lines of JSON, with those to
// other questions, whose types have differed.
func answersOf(t *testing.T, r answerer, others map[string]any) []byte {
	t.Helper()
	var lines bytes.Buffer
	note := func(what string, answer any, err error) {
		if err != nil {
			answer = errors.Unwrap(err).Error()
		}
		text, failed := json.Marshal(answer)
		if failed != nil {
			t.Fatal(failed)
		}
		fmt.Fprintf(&lines, "%s: %s\n", what, text)
	}
	ctx := t.Context()
	for seq := int64(1); seq <= 12; seq++ {
		row, err := r.Task(ctx, seq)
		note(fmt.Sprintf("task %d", seq), row, err)
		for what, ask := range map[string]func(context.Context, int64) ([]byte, error){"raw": r.Raw, "result": r.Result, "withheld": r.Withheld} {
			body, err := ask(ctx, seq)
			body = append([]byte(nil), body...) // nil if it is empty
			others[fmt.Sprintf("%s %d", what, seq)] = body
			if err != nil {
				others[fmt.Sprintf("%s %d", what, seq)] = errors.Unwrap(err).Error()
			}
		}
		runs, err := r.Runs(ctx, seq)
		note("runs", runs, err)
		approvals, err := r.Approvals(ctx, seq)
		note("approvals", approvals, err)
		delivery, err := r.Delivery(ctx, seq)
		note("delivery", delivery, err)
		conversation, found, err := r.Conversation(ctx, seq)
		note(fmt.Sprint("conversation ", found), conversation, err)
		about, err := r.About(ctx, seq)
		for i := range about {
			about[i].Body = append([]byte(nil), about[i].Body...)
		}
		note("messages", about, err)
		children, err := r.Children(ctx, seq)
		note("children", children, err)
		story, err := r.Story(ctx, row.ID, 100)
		note("story", story, err)
	}
	events, err := r.Events(ctx, "", 0, 1000)
	note("events", events, err)
	last, err := r.LastEvent(ctx)
	note("last event", last, err)
	balances, err := r.Balances(ctx, "2026-03-09")
	note("balances", balances, err)
	paused, err := r.Paused(ctx)
	note("paused", paused, err)
	lost, err := r.Lost(ctx)
	note("lost", lost, err)
	open, err := r.CountOpen(ctx)
	note("open", open, err)
	due, err := r.Due(ctx, 0, 100)
	note("due", due, err)
	cancelled, err := r.Cancelled(ctx)
	note("cancelled", cancelled, err)
	notified, err := r.WithOpenNotifications(ctx)
	note("open notifications", notified, err)
	inThread, err := r.ThreadTasks(ctx, "thread")
	note("tasks of a thread", inThread, err)
	inTrace, err := r.TraceTasks(ctx, "trace")
	note("tasks of a trace", inTrace, err)
	trace, err := r.Trace(ctx, "trace")
	note("messages of a trace", trace, err)
	unsettled, err := r.Unsettled(ctx, 0, 100)
	note("unsettled", unsettled, err)
	note("others", others, nil)
	return lines.Bytes()
}
