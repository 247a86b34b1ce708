package dispatch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/mailbox"
)

// lay writes lines to a task file at once, without a look at them.
func (e *engine) lay(lines ...string) {
	e.t.Helper()
	path := filepath.Join(e.parts.Box.TasksDir(), "laid.jsonl")
	e.must(os.WriteFile(path+"-", []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	e.must(os.Rename(path+"-", path))
}

func TestBatchesThatAreDecodedAheadMeanWhatTheyMeanInTurn(t *testing.T) {
	e := newEngine(t)
	e.opts.Tail = mailbox.TailOptions{BatchLines: 2}
	e.judge = func(envelope.Task, time.Time) task.Verdict {
		return task.Verdict{Admit: true, Hold: []task.Reason{task.Operator}}
	}
	e.start()
	const ids = 20
	const form = `{"schema_version":"1.0","task_id":%q,"requester_id":"tester","target_agent":"slow","target_role":"executor",` +
		`"task_type":"work","description":%q,"input":{"refs":[],"payload":{}}}`
	var lines []string
	for n := range ids { // what belongs together is in neighbouring batches
		id := fmt.Sprintf("t%d", n)
		one, other := fmt.Sprintf(form, id, "one"), fmt.Sprintf(form, id, "other")
		lines = append(lines, one, one, "{no JSON "+id, other, one)
	}
	e.lay(lines...)
	e.look()
	for n := range ids {
		id := fmt.Sprintf("t%d", n)
		if row := e.row(id); row.Revision != 3 || row.State != task.Held {
			t.Errorf("%s = %+v; want its third revision, held", id, row)
		}
		kinds, _ := e.history(id)
		if got := strings.Count(strings.Join(kinds, " "), "task.duplicate"); got != 1 {
			t.Errorf("the events of %s is %v; want one duplicate", id, kinds)
		}
	}
	e.must(e.Idle(t.Context()))
	letters, err := filepath.Glob(filepath.Join(e.dir, "box", "rejected", "*"))
	e.must(err)
	found := 0
	for _, name := range letters {
		text, err := os.ReadFile(name)
		e.must(err)
		found += strings.Count(string(text), "{no JSON ")
	}
	if found != ids {
		t.Errorf("%d dead letters in %v, want %d", found, letters, ids)
	}
}
