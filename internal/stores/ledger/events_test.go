package ledger_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// Row 44: sequence numbers order events, not clocks.
func TestEventsStayInOrderWhenTheClockGoesBack(t *testing.T) {
	l := open(t)
	add(t, l, named("a", 1, task.Done), named("b", 1, task.Done), named("a", 2, task.Queued))
	update(t, l, func(tx *ledger.Tx) error {
		return errors.Join(
			tx.Log(task.Event{Time: noon, Kind: "one", Task: "a", Revision: 1}),
			tx.Log(task.Event{Time: noon.Add(-time.Hour), Kind: "two", Task: "b", Revision: 1, Data: jsontext.Value(`{"n":1.0}`)}),
			tx.Log(task.Event{Time: noon.Add(-time.Minute), Kind: "three"}),
			tx.Log(task.Event{Time: noon.Add(-time.Second), Kind: "four", Task: "a", Revision: 2}),
		)
	})
	want := []task.Event{
		{Seq: 1, Time: noon, Kind: "one", Task: "a", Revision: 1, Data: jsontext.Value("{}")},
		{Seq: 2, Time: noon.Add(-time.Hour), Kind: "two", Task: "b", Revision: 1, Data: jsontext.Value(`{"n":1.0}`)},
		{Seq: 3, Time: noon.Add(-time.Minute), Kind: "three", Data: jsontext.Value("{}")},
		{Seq: 4, Time: noon.Add(-time.Second), Kind: "four", Task: "a", Revision: 2, Data: jsontext.Value("{}")},
	}
	got, err := l.Events(t.Context(), "", 0, 10)
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("Events() = %v; difference (-want +got):\n%s", err, cmp.Diff(want, got))
	}
	got, err = l.Events(t.Context(), "a", 0, 10)
	if want := []task.Event{want[0], want[3]}; err != nil || !cmp.Equal(got, want) {
		t.Errorf("Events(a) = %v; difference (-want +got):\n%s", err, cmp.Diff(want, got))
	}
	got, err = l.Events(t.Context(), "", 1, 2)
	if want := want[1:3]; err != nil || !cmp.Equal(got, want) {
		t.Errorf("Events(second page) = %v; difference (-want +got):\n%s", err, cmp.Diff(want, got))
	}
}

func TestAnEventOfNoKnownTaskIsAnError(t *testing.T) {
	l := open(t)
	add(t, l, named("a", 1, task.Done))
	err := l.Update(context.Background(), func(tx *ledger.Tx) error {
		return tx.Log(task.Event{Time: noon, Kind: "one", Task: "a", Revision: 2})
	})
	if !errors.Is(err, ledger.ErrUnknown) {
		t.Errorf("Log(revision 2 of 1) = %v; want ErrUnknown", err)
	}
}

func TestARunIsIntendedThenStartedThenEndedOnce(t *testing.T) {
	l := open(t)
	seq := add(t, l, newTask(1))[0]
	tokens := int64(0)
	intended := task.Run{Task: seq, Attempt: 1, ID: "r-1", Intent: noon}
	intended.At = task.Assignment{Runner: "gpu-1", Incarnation: "i", Token: "1/2/3"}
	started := intended
	started.PID, started.PIDStart, started.Boot = 4321, math.MaxUint64, "boot"
	ended := started
	ended.Started, ended.Finished, ended.ExitCode, ended.Signal, ended.Cause = noon.Add(time.Second), noon.Add(time.Minute), -1, "SIGKILL", "timeout"
	ended.Tokens = &tokens // none, while the cents are unknown
	ended.Settled = true
	ended.Settled = true
	late := ended
	late.ExitCode, late.Signal = 0, ""

	for _, step := range []struct {
		do   func(*ledger.Tx) error
		want task.Run
	}{
		{func(tx *ledger.Tx) error { return tx.StartRun(intended) }, intended},
		{func(tx *ledger.Tx) error { return tx.SetProcess(seq, 1, started.PID, started.PIDStart, started.Boot) }, started},
		{func(tx *ledger.Tx) error { return tx.FinishRun(ended) }, ended},
		{func(tx *ledger.Tx) error { return tx.FinishRun(late) }, ended},
	} {
		update(t, l, step.do)
		got, err := l.Runs(t.Context(), seq)
		if want := []task.Run{step.want}; err != nil || !cmp.Equal(got, want) {
			t.Errorf("Runs() = %v; difference (-want +got):\n%s", err, cmp.Diff(want, got))
		}
	}
	if err := l.Update(t.Context(), func(tx *ledger.Tx) error { return tx.StartRun(intended) }); err == nil {
		t.Error("StartRun(the same attempt) = nil; want an error")
	}
}

func TestAFileIsRememberedByItsPath(t *testing.T) {
	l := open(t)
	a := ledger.File{Path: "tasks/a.jsonl", Dev: math.MaxUint64, Inode: 1 << 63, Offset: 1, Replay: 2, Head: []byte{0}, Tail: []byte{0xff}}
	b := ledger.File{Path: "tasks/b.jsonl", Dev: 1, Inode: 2}
	later := a
	later.Inode, later.Offset = 9, 99
	check := func(want ...ledger.File) {
		t.Helper()
		got, err := l.Files(t.Context())
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("Files() = %v; difference (-want +got):\n%s", err, cmp.Diff(want, got))
		}
	}
	check()
	update(t, l, func(tx *ledger.Tx) error { tx.SetFile(b); tx.SetFile(a); return nil })
	check(a, b)
	update(t, l, func(tx *ledger.Tx) error { tx.SetFile(later); return nil })
	check(later, b)
}
