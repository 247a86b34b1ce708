package dispatch_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

// blocked starts an engine with a directory in the place of a callback's file, and has a
// task's callbacks fail there until they are abandoned.
func blocked(t *testing.T, callback string) (e *engine, path string) {
	e = newEngine(t)
	e.start()
	path = filepath.Join(e.parts.Box.Path(), "agents", "there.jsonl")
	e.plays["quick"] = func(_ context.Context, j task.Job) task.Outcome {
		if j.Revision == 1 {
			e.must(os.MkdirAll(path, 0o700))
		}
		return decision(j, "done")
	}
	e.send("t1", "quick", `"callback":`+callback)
	e.until("the callback fails", func() bool { return e.countOf("t1", task.KindCallbackFailed) == 1 })
	e.tryOften("t1")
	return e, path
}

// tryOften has the callbacks of a task tried 30 times, which fail.
func (e *engine) tryOften(id string) {
	e.t.Helper()
	for range 30 {
		e.Reevaluate(e.t.Context(), e.row(id).Seq)
	}
	if row := e.row(id); !row.LacksCallback() {
		e.t.Errorf("%s is %s, put %t, delivered %t; want its callback to be lacking", id, row.State, row.Put, row.Delivered)
	}
}

// countOf counts the events of a kind that a task has.
func (e *engine) countOf(id string, kind task.Kind) int {
	e.t.Helper()
	kinds, _ := e.history(id)
	return len(slices.DeleteFunc(kinds, func(k string) bool { return k != string(kind) }))
}

func wantLines(t *testing.T, path string, want int) {
	t.Helper()
	text, err := os.ReadFile(path)
	if n := strings.Count(string(text), "\n"); n != want || err != nil {
		t.Errorf("%s has %d lines, %v; want %d:\n%s", path, n, err, want, text)
	}
}

const fileCallback = `{"file_append":"agents/there.jsonl"}`

func TestAnErrorThatStaysEndsInAReasonThatAPersonSees(t *testing.T) {
	e, _ := blocked(t, fileCallback)
	e.wantEvent("t1", "callback.failed")
	e.wantEvent("t1", "callback.abandoned")
	if _, data := e.history("t1"); !strings.Contains(data, `"attempts":8,"reason":"callback.file_append: append callback agents/there.jsonl: `) {
		t.Errorf("events say %s; want the attempts and the reason", data)
	}
	if logged := e.log.count(`mailboxd release t1`); logged != 1 || e.log.count("cannot be delivered; not trying again") != 1 {
		t.Errorf("the log says what to do %d times; want once:\n%s", logged, e.log.String())
	}
	e.wantResult("t1", "done, revision 1")
}

func TestAReleaseHasAnAbandonedCallbackMadeOnce(t *testing.T) {
	e, path := blocked(t, `{"queue":"q","file_append":"agents/there.jsonl"}`)
	e.must(e.Release(t.Context(), "t1", me)) // too early
	e.tryOften("t1")
	if n := e.countOf("t1", task.KindCallbackAbandoned); n != 2 {
		t.Errorf("abandoned %d times; want 2, before the release and after it", n)
	}
	e.must(os.Remove(path))
	e.must(e.Release(t.Context(), "t1", me))
	e.await("t1", task.Done)
	wantLines(t, path, 1)
	wantLines(t, filepath.Join(e.parts.Box.Path(), "queues", "q.jsonl"), 1)
	if n := e.countOf("t1", task.KindTaskReleased); n != 2 {
		t.Errorf("released %d times; want 2", n)
	}
	err := e.Release(t.Context(), "t1", me)
	if _, is := errors.AsType[*core.StateError](err); !is {
		t.Errorf("Release(what lacks no callback) = %v; want that it is done", err)
	}
}

func TestAReleaseTriesACallbackAtOnceThatIsNotAbandoned(t *testing.T) {
	e := startEngine(t)
	path := filepath.Join(e.parts.Box.Path(), "agents", "there.jsonl")
	e.must(os.MkdirAll(path, 0o700))
	e.send("t1", "quick", `"callback":`+fileCallback)
	e.until("the callback fails", func() bool { return e.countOf("t1", task.KindCallbackFailed) == 1 })
	e.must(os.Remove(path))
	e.must(e.Release(t.Context(), "t1", me))
	if !e.row("t1").Delivered {
		t.Error("the callback is lacking after the release")
	}
	wantLines(t, path, 1)
}

func TestARestartTriesAnAbandonedCallbackAgain(t *testing.T) {
	e, path := blocked(t, fileCallback)
	e.must(os.Remove(path))
	e.restart()
	e.await("t1", task.Done)
	wantLines(t, path, 1)
	e.wantEvent("t1", "callback.abandoned")
}

func TestAnAbandonedCallbackKeepsNothingElseWaiting(t *testing.T) {
	e, path := blocked(t, fileCallback)
	e.must(e.Idle(t.Context()))
	e.must(os.Remove(path))
	e.send("t1", "quick", `"callback":`+fileCallback, `"metadata":{"n":2}`)
	e.await("t1", task.Done)
	e.wantResult("t1", "done, revision 2")
	wantLines(t, path, 1)
	e.must(e.Release(t.Context(), "t1", me)) // of the first revision
	wantLines(t, path, 2)
}

func TestTheCallbackOfARefusedTaskIsAbandonedToo(t *testing.T) {
	e := startEngine(t)
	path := filepath.Join(e.parts.Box.Path(), "agents", "there.jsonl")
	e.must(os.MkdirAll(path, 0o700))
	e.send("t1", "quick", `"callback":`+fileCallback)
	e.until("the callback fails", func() bool { return e.countOf("t1", task.KindCallbackFailed) == 1 })
	e.tryOften("t1")
	e.wantEvent("t1", "callback.abandoned")
	e.wantResult("t1", `"status": "rejected"`)
}

// withoutRoom starts an engine with a task whose callback fails for want of room in a queue.
func withoutRoom(t *testing.T) (e *engine, queue string) {
	const large = 8 << 20
	e = startEngine(t)
	queue = filepath.Join(e.parts.Box.Path(), "queues", "q.jsonl")
	e.must(os.MkdirAll(filepath.Dir(queue), 0o700))
	e.must(os.WriteFile(queue, []byte("\n"), 0o600))
	e.must(os.Truncate(queue, large))
	e.limitFiles(large)
	e.send("t1", "quick", `"callback":{"queue":"q"}`)
	e.until("the callback fails", func() bool { return e.countOf("t1", task.KindCallbackFailed) == 1 })
	return e, queue
}

func TestASharedFaultEndsWhenAnObstacleTakesItsPlace(t *testing.T) {
	if !alone(t) {
		return
	}
	e, queue := withoutRoom(t)
	e.until("the fault is reported", func() bool { return len(e.Faults()) == 1 })
	e.must(os.Remove(queue))
	e.must(os.Mkdir(queue, 0o700))
	e.limitFiles(unix.RLIM_INFINITY)
	e.Reevaluate(t.Context(), e.row("t1").Seq)
	if faults := e.Faults(); len(faults) > 0 {
		t.Errorf("faults = %+v; want none of all tasks", faults)
	}
}

func TestACallbackThatLacksRoomIsTriedUntilThereIsSome(t *testing.T) {
	if !alone(t) {
		return
	}
	e, _ := withoutRoom(t)
	e.tryOften("t1")
	if n := e.countOf("t1", task.KindCallbackAbandoned); n > 0 {
		t.Errorf("abandoned %d times for want of room; want never", n)
	}
	e.limitFiles(unix.RLIM_INFINITY)
	e.Reevaluate(t.Context(), e.row("t1").Seq)
	e.await("t1", task.Done)
	e.wantEvent("t1", "callback.failed")
}
