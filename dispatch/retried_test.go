package dispatch_test

import (
	"context"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// A task that is run again has the name of its request and a row of its own.
func TestTheQuestionOfARetriedTaskIsAboutItsNewRevision(t *testing.T) {
	e := newEngine(t)
	e.dialects = map[string]envelope.Dialect{"quick": envelope.CLowl}
	ask := false
	e.plays["quick"] = func(ctx context.Context, j task.Job) task.Outcome {
		switch {
		case !ask:
			return task.Outcome{Result: envelope.Result{Status: envelope.Failed, Error: envelope.Error{Kind: envelope.AgentError, Message: "no"}}, Exit: task.Exit{Started: time.Now()}}
		case j.Attempt > 1:
			return quick(ctx, j)
		}
		return task.Outcome{Hold: task.Reply, Exit: task.Exit{Started: time.Now()}, Messages: []envelope.Message{
			{Act: envelope.Asks, Dialect: envelope.CLowl, ID: "question", To: []string{"ann"}, Type: "which", Text: "which?", WantsReply: true},
		}}
	}
	e.start()
	e.say(req("m1", "quick"))
	e.await("m1", task.Done)
	ask = true
	e.must(e.Retry(t.Context(), "m1", me))
	e.await("m1", task.Held)
	e.say(word{mid: "r1", p: "INF", from: "ann", to: "quick", pid: "question"}.line())
	if row := e.await("m1", task.Done); row.Attempt != 2 || row.Status != envelope.OK {
		t.Errorf("m1 = %+v; want it done by a second attempt", row)
	}
}
