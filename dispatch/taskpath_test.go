package dispatch_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/testtools/slowtest"
)

func holding(envelope.Task, time.Time) task.Verdict {
	return task.Verdict{Admit: true, Hold: []task.Reason{task.Approval}}
}

func TestAFragmentReplacesNothing(t *testing.T) {
	e := startEngine(t)
	e.judge = holding
	e.send("victim", "quick")
	for _, fragment := range []string{`{"schema_version":"1.0","task_id":"victim","requ`, `{"task_id":"victim","input":{"payload":NaN}}`, `{"torn":"` + request("victim", "quick", `"deadline":"tomorrow"`)} {
		e.say(fragment)
		if row := e.row("victim"); row.Revision != 1 || row.State != task.Held {
			t.Errorf("after %s: revision %d, %s; want the first one, held", fragment, row.Revision, row.State)
		}
	}
	e.must(e.Idle(t.Context()))
	letters, err := filepath.Glob(filepath.Join(e.parts.Box.Path(), "rejected", "*.jsonl"))
	e.must(err)
	text, err := os.ReadFile(letters[0])
	e.must(err)
	if n := strings.Count(string(text), "\n"); n != 4 {
		t.Errorf("%d dead letters; want 4:\n%s", n, text)
	}

	// A new id that only a fragment names is answered, and may then be asked for.
	e.say(`{"task_id":"torn","requ`)
	if row := e.await("torn", task.Done); row.Status != envelope.Rejected {
		t.Errorf("torn is %s; want rejected", row.Status)
	}
	e.send("torn", "quick")
	if row := e.row("torn"); row.Revision != 2 || row.State != task.Held {
		t.Errorf("torn, sent whole: revision %d, %s; want 2, held", row.Revision, row.State)
	}
}

// tiredOnce asks for another attempt the first time.
func tiredOnce(_ context.Context, j task.Job) task.Outcome {
	o := decision(j, "done")
	if j.Attempt == 1 {
		o.Exit = task.Exit{Code: 75, Started: time.Now()}
		o.Result.Status, o.Retry = envelope.Failed, true
	}
	return o
}

func TestATaskThatRanIsNotRejectedAfterwards(t *testing.T) {
	e := newEngine(t)
	var late atomic.Bool
	e.plays["quick"] = func(ctx context.Context, j task.Job) task.Outcome {
		late.Store(true)
		return tiredOnce(ctx, j)
	}
	e.judge = func(envelope.Task, time.Time) task.Verdict {
		if late.Load() {
			return task.Verdict{Findings: envelope.Findings{{Kind: envelope.DeadlineExceeded, Field: "deadline", Message: "is past"}}}
		}
		return task.Verdict{Admit: true}
	}
	e.start()
	e.send("t1", "quick")
	if row := e.await("t1", task.Done); row.Status != envelope.Failed || row.Kind != envelope.DeadlineExceeded {
		t.Errorf("t1 = %s (%s); want error (deadline_exceeded): an agent ran", row.Status, row.Kind)
	}
}

func TestARevisionBehindOneThatRestsDoesNotWaitForIt(t *testing.T) {
	e := newEngine(t)
	goOn := make(chan struct{})
	e.plays["quick"] = func(ctx context.Context, j task.Job) task.Outcome {
		if j.Revision == 1 {
			<-goOn
			return tiredOnce(ctx, j)
		}
		return decision(j, "done")
	}
	e.start()
	e.send("t1", "quick")
	e.await("t1", task.Running)
	e.send("t1", "quick", `"metadata":{"n":2}`)
	if row := e.row("t1"); row.State != task.Received {
		t.Fatalf("revision 2 is %s; want received", row.State)
	}
	close(goOn)
	e.await("t1", task.Done)
	e.wantResult("t1", "done, revision 2")
}

func TestHeldTasksAreJudgedAgainWhenTheRulesChange(t *testing.T) {
	e := newEngine(t)
	var lenient atomic.Bool
	e.judge = func(t envelope.Task, now time.Time) task.Verdict {
		if lenient.Load() {
			return task.Verdict{Admit: true}
		}
		return holding(t, now)
	}
	e.start()
	e.send("t1", "quick")
	e.send("t2", "quick")
	e.wantHeld("t1", task.Approval)
	lenient.Store(true)
	e.ReevaluateAll()
	e.await("t1", task.Done)
	e.await("t2", task.Done)
}

func TestHeldTasksAreJudgedAgainAtAStart(t *testing.T) {
	e := startEngine(t)
	e.judge = holding
	e.send("t1", "quick")
	e.end()
	e.judge = func(envelope.Task, time.Time) task.Verdict { return task.Verdict{Admit: true} }
	e.start()
	e.await("t1", task.Done)
}

func TestWhatIsNoFileIsLeftAloneAndHoldsTheNextRevision(t *testing.T) {
	slowtest.SkipShort(t, "it waits for seconds")
	e := startEngine(t)
	e.send("t1", "quick")
	e.await("t1", task.Done)
	path := filepath.Join(e.parts.Box.ResultsDir(), "t1.json")
	e.must(errors.Join(os.Remove(path), os.Mkdir(path, 0o700)))
	e.send("t1", "quick", `"metadata":{"n":2}`)
	e.await("t1", task.Held)
	e.wantHeld("t1", task.ResultInvalid)
	e.must(os.Remove(path))
	e.await("t1", task.Done)
	e.wantResult("t1", "done, revision 2")
}

func TestACallbackThatFailsDoesNotRepeatTheOthers(t *testing.T) {
	slowtest.SkipShort(t, "it waits for seconds")
	e := startEngine(t)
	e.must(os.MkdirAll(filepath.Join(e.parts.Box.Path(), "agents", "x"), 0o700))
	e.send("t1", "quick", `"callback":{"queue":"q","file_append":"agents/x"}`) // a directory
	e.until("the callback has failed", func() bool {
		kinds, _ := e.history("t1")
		return strings.Contains(strings.Join(kinds, " "), "callback.failed")
	})
	e.must(os.Remove(filepath.Join(e.parts.Box.Path(), "agents", "x")))
	e.await("t1", task.Done) // the next attempt
	queue, err := os.ReadFile(filepath.Join(e.parts.Box.Path(), "queues", "q.jsonl"))
	e.must(err)
	if n := strings.Count(string(queue), "\n"); n != 1 {
		t.Errorf("%d lines in the queue; want 1:\n%s", n, queue)
	}
	e.wantEvent("t1", "callback.failed")
}

func TestALifeLeavesNoDescriptorsBehind(t *testing.T) {
	slowtest.Serial(t)
	e := startEngine(t)
	descriptors := func() int {
		t.Helper()
		e.send("t1", "quick", `"metadata":{"n":1}`)
		e.await("t1", task.Done)
		e.end()
		fds, err := os.ReadDir("/proc/self/fd")
		e.must(err)
		e.start()
		return len(fds)
	}
	before := descriptors()
	for range 10 {
		descriptors()
	}
	if after := descriptors(); after > before+5 {
		t.Errorf("%d descriptors after 10 lives more; want about %d", after, before)
	}
}
