package dispatch_test

import (
	"strings"
	"testing"

	"mailboxd/internal/task"
)

// A run in a sandbox copies the Clutch request of somebody else's failed task, with a higher attempt.
func TestARunFileDoesNotReplaceATaskOfSomebodyElse(t *testing.T) {
	e, letGo := inRun(t)
	line := `{"v":"clutch/0.1","id":"m1","ts":"2026-02-01T13:20:11.123Z","thread_id":"thr_1","run_id":"run_1","task_id":"victim","from":{"agent_id":"agent:ui"},"to":[{"agent_id":"agent:broken"}],"type":"task.request","payload":{"title":"Find it"}}`
	e.say(line)
	e.await("victim", task.Done)
	before := e.row("victim")
	e.write(strings.Replace(strings.Replace(line, `"id":"m1"`, `"id":"m2"`, 1), `"payload"`, `"attempt":2,"payload"`, 1) + "\n")
	e.Look(t.Context())
	after := e.row("victim")
	if after.Revision != before.Revision || after.Status != before.Status {
		t.Errorf("the run of own replaced victim")
	}
	letGo()
}
