package dispatch_test

import (
	"context"
	"testing"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/operating/metrics"
)

// An agent chooses the word of its status, and every user can read metrics.textfile.
func TestNoWordOfAnAgentIsInTheMetrics(t *testing.T) {
	const word = "AKIA-the-secret-of-the-payload"
	said, _ := envelope.DecodeAnswer([]byte(`{"status":"` + word + `","output":{"summary":"s"}}`))
	e := newEngine(t)
	e.plays["leaky"] = func(_ context.Context, j task.Job) task.Outcome {
		o := decision(j, "done")
		o.Result.Status = said.Status
		return o
	}
	e.start()
	e.send("t1", "leaky")
	e.await("t1", task.Done)
	e.Writer.Counts.Read(func(_ map[string]int64, ended map[store.EndedKey]int64, _ map[string]metrics.RunCounts) {
		for k := range ended {
			if k.Status == word {
				t.Errorf("the metrics have the status %q", k.Status)
			}
		}
	})
}
