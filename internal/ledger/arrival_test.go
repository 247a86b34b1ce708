package ledger

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailboxd/envelope"
	"mailboxd/internal/task"
)

// A new task is in the tables as it was added, whether it is like any other that
// comes in or differs in whatever column.
func TestANewTaskIsInTheTablesAsItWasAdded(t *testing.T) {
	l, _, err := Open(filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	at := time.UnixMicro(1_700_000_000_000_000).UTC()
	plain := task.Task{
		Revision: 1, Latest: true, Hash: "h", Dialect: envelope.AINL, State: task.Queued, Agent: "a", Requester: "r", Type: "t",
		Received: at, File: "tasks/a.jsonl", Offset: 7,
	}
	c := newLayer()
	for _, set := range []func(*task.Task){
		func(*task.Task) {}, func(t *task.Task) { t.Revision = 2 }, func(t *task.Task) { t.Latest = false }, func(t *task.Task) { t.Dialect = envelope.CAP },
		func(t *task.Task) { t.State = task.Held }, func(t *task.Task) { t.Attempt = 3 }, func(t *task.Task) { t.Reasons = []task.Reason{task.Approval, task.Paused} },
		func(t *task.Task) { t.Until = at }, func(t *task.Task) { t.Deadline = at }, func(t *task.Task) { t.Finished = at },
		func(t *task.Task) { t.Status = envelope.OK }, func(t *task.Task) { t.Kind = envelope.Capacity }, func(t *task.Task) { t.ResultSum = "s" },
		func(t *task.Task) { t.Put = true }, func(t *task.Task) { t.Delivered = true }, func(t *task.Task) { t.Replaces = true },
		func(t *task.Task) { t.Parent = 1 }, func(t *task.Task) { t.Depth = 1 }, func(t *task.Task) { t.Agent, t.Requester, t.Type = "", "", "" },
		func(t *task.Task) { t.Received, t.File, t.Offset = time.Time{}, "", 0 }, func(*task.Task) {},
	} {
		row := plain
		row.Seq = int64(len(c.order) + 1)
		row.ID = envelope.ID(rune('a' + row.Seq))
		set(&row)
		c.setTask(&taskChange{Task: row, added: true, raw: []byte("{}")})
	}
	if err := l.commitTables(0, c); err != nil {
		t.Fatal(err)
	}
	for _, seq := range c.order {
		got, err := l.idleReader.Task(t.Context(), seq)
		if diff := cmp.Diff(c.tasks[seq].Task, got); diff != "" || err != nil {
			t.Errorf("Task(%d), %v (-added +read):\n%s", seq, err, diff)
		}
	}
}
