package dispatch_test

import (
	"fmt"
	"strings"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
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

// clutchChild is a request of the agent chief for the agent quick, in a run of Clutch.
func clutchChild(id, run, parent string) string {
	if parent != "" {
		parent = fmt.Sprintf(`"parent_task_id":%q,`, parent)
	}
	return fmt.Sprintf(`{"v":"clutch/0.1","id":"m-%s","ts":"2026-02-01T13:20:11.123Z","thread_id":"thr_1","run_id":%q,"task_id":%q,%s`+
		`"from":{"agent_id":"agent:chief"},"to":[{"agent_id":"agent:quick"}],"type":"task.request","payload":{"title":"Find it"}}`+"\n", id, run, id, parent)
}

func TestAClutchRequestIsBelowTheTaskWhoseRunWroteIt(t *testing.T) {
	e, letGo := inRun(t)
	e.send("later", "chief")
	e.await("later", task.Running)
	own, later := e.row("own").Seq, e.row("later").Seq
	e.write(clutchChild("plain", "own", "") + clutchChild("named", "own", "own") +
		clutchChild("strayed", "later", "later") + clutchChild("lost", "later", ""))
	e.Look(t.Context())
	for id, want := range map[string]envelope.Kind{"plain": "", "named": "", "strayed": envelope.IdentityMismatch, "lost": envelope.InvalidEnvelope} {
		if row := e.row(id); row.Parent != own || row.Kind != want {
			t.Errorf("%s is below task %d, with %q; want it below %d, with %q", id, row.Parent, row.Kind, own, want)
		}
	}
	e.say(strings.TrimSuffix(clutchChild("first", "own", ""), "\n")) // in a file of the mailbox, the run says which task it is
	e.say(strings.TrimSuffix(clutchChild("second", "later", ""), "\n"))
	for id, parent := range map[string]int64{"first": own, "second": later} {
		if row := e.row(id); row.Parent != parent || row.Kind != "" {
			t.Errorf("%s is below task %d, with %q; want it below %d", id, row.Parent, row.Kind, parent)
		}
	}
	letGo()
}
