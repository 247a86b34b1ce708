package dispatch_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// after is the member of a line that names the task to wait for.
func after(other string) string {
	return fmt.Sprintf(`"metadata":{"mbx.after":{"task_id":%q}}`, other)
}

func TestTasksThatComeTogetherAndWaitForEachOtherEnd(t *testing.T) {
	e := startEngine(t)
	e.say(request("a", "quick", after("c")), request("b", "quick", after("a")), request("c", "quick", after("b")))
	found := false
	for _, id := range []string{"a", "b", "c"} {
		if row := e.await(id, task.Done); row.Status != "rejected" {
			t.Errorf("%s ended as %s; want rejected", id, row.Status)
		}
		if strings.Contains(e.result(id), "waits for this one") { // it depends on when each is judged
			found = true
		}
	}
	if !found {
		t.Error("no result says that another task waits for this one")
	}
}

func TestATaskThatComesWithTheOneThatItWaitsForStarts(t *testing.T) {
	e := startEngine(t)
	e.say(request("second", "quick", after("first")), request("first", "quick"))
	e.await("second", task.Done)
	e.wantResult("second", `"status": "ok"`)
}

func TestAnOperatorsHoldLeavesWhatATaskWaitsFor(t *testing.T) {
	e := startEngine(t)
	e.send("second", "quick", after("first"))
	e.await("second", task.Held)
	e.must(e.Hold(t.Context(), "second", me))
	e.must(e.Release(t.Context(), "second", me))
	e.until("second waits for first alone", func() bool { return len(e.row("second").Reasons) == 1 })
	e.wantWait("second", task.AfterKey("first"))
	e.restart()
	e.send("first", "quick")
	e.await("second", task.Done)
	e.wantWait("second", "")
}

func TestATaskOfABuildThatDidNotRecordWhatWakesItIsWoken(t *testing.T) {
	e := startEngine(t)
	e.send("second", "quick", after("first"))
	row := e.await("second", task.Held)
	e.must(e.parts.Ledger.Update(t.Context(), func(tx *ledger.Tx) error {
		_, err := tx.Move(row.Seq, task.Held, 0, task.Change{To: task.Held})
		if err == nil {
			_, err = tx.Move(row.Seq, task.Held, 0, task.Change{To: task.Held, Reasons: row.Reasons, Until: row.Until})
		}
		return err
	}))
	e.wantWait("second", "")
	e.restart()
	e.until("what wakes second is recorded", func() bool { return e.waitOf("second") != "" })
	e.send("first", "quick")
	e.await("second", task.Done)
}

// waitOf is what wakes a task; "" for nothing.
func (e *engine) waitOf(id string) task.Key {
	e.t.Helper()
	waits, err := e.parts.Ledger.Waits(context.Background(), e.row(id).Seq)
	e.must(err)
	if len(waits) == 0 {
		return ""
	}
	return waits[0].Key
}

func (e *engine) wantWait(id string, want task.Key) {
	e.t.Helper()
	if got := e.waitOf(id); got != want {
		e.t.Errorf("%s waits for %q; want %q", id, got, want)
	}
}
