package ledger_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

func TestATaskComesBackAsItWasAdded(t *testing.T) {
	l, ctx := open(t), context.Background()
	berlin := time.FixedZone("", 3600)
	want := task.Task{
		ID: "report-é", Revision: 1, Hash: "h", Dialect: "ainl",
		State: task.Held, Attempt: 2, Reasons: []task.Reason{task.Approval, task.ChangeWindow}, Until: noon.In(berlin), Due: noon.In(berlin),
		Agent: "a", Requester: "r", Type: "t",
		Deadline: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), Received: noon, Finished: time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC),
		File: "tasks/a.jsonl", Offset: 1 << 40, Status: envelope.Partial, Kind: envelope.Timeout, Put: true, Delivered: true, Replaces: true,
		Parent: 7, Depth: 3, Priority: -2,
	}
	for field, value := range reflect.ValueOf(want).Fields() {
		if value.IsZero() && !slices.Contains([]string{"Seq", "Latest", "ResultSum"}, field.Name) { // which Add sets, or a result
			t.Errorf("this test has no value for %s", field.Name)
		}
	}
	seq := add(t, l, want)[0]
	got, err := l.Task(ctx, seq)
	want.Seq, want.Latest, want.Until, want.Due = seq, true, noon, noon
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("Task(%d) = %v; want nil and no difference (-want +got):\n%s", seq, err, cmp.Diff(want, got))
	}
	raw, err := l.Raw(ctx, seq)
	if err != nil || string(raw) != "report-é" {
		t.Errorf("Raw(%d) = %q, %v; want the line as it came", seq, raw, err)
	}
}

// Row 5: numbers are kept to the byte, and so is everything else.
func TestALineKeepsItsBytes(t *testing.T) {
	l := open(t)
	for n, want := range [][]byte{nil, {}, {0}, {0xff, 0, '\n'}, []byte(`{"n":1.0,"n2":30000000000000000000000000001}`)} {
		var seq int64
		update(t, l, func(tx *ledger.Tx) (err error) {
			seq, err = tx.Add(newTask(n), want)
			return err
		})
		got, err := l.Raw(context.Background(), seq)
		if err != nil || string(got) != string(want) {
			t.Errorf("Raw() = %q, %v; want %q", got, err, want)
		}
	}
}

func TestOnlyTheHighestRevisionIsTheLatest(t *testing.T) {
	l, ctx := open(t), context.Background()
	add(t, l, named("a", 1, task.Done), named("b", 1, task.Done), named("a", 2, task.Running), named("a", 3, task.Received))
	update(t, l, func(tx *ledger.Tx) error {
		latest, ok, err := tx.Latest("a")
		if err != nil || !ok || latest.Revision != 3 {
			t.Errorf("Latest(a) = revision %d, %v, %v; want 3", latest.Revision, ok, err)
		}
		if _, ok, err := tx.Latest("c"); ok || err != nil {
			t.Errorf("Latest(c) = %v, %v; want none", ok, err)
		}
		return nil
	})
	tasks, err := l.Tasks(ctx, ledger.Filter{})
	if want := []string{"b.1", "a.3"}; err != nil || !cmp.Equal(ids(tasks), want) {
		t.Errorf("Tasks() = %v, %v; want %v", ids(tasks), err, want)
	}
	revisions, err := l.Revisions(ctx, "a")
	if want := []string{"a.1", "a.2", "a.3"}; err != nil || !cmp.Equal(ids(revisions), want) {
		t.Errorf("Revisions(a) = %v, %v; want %v", ids(revisions), err, want)
	}
	for _, revision := range revisions {
		if got, want := revision.Latest, revision.Revision == 3; got != want {
			t.Errorf("Latest of revision %d = %v; want %v", revision.Revision, got, want)
		}
	}
}

func TestARevisionIsAddedOnce(t *testing.T) {
	l := open(t)
	add(t, l, named("a", 1, task.Queued))
	err := l.Update(context.Background(), func(tx *ledger.Tx) error {
		_, err := tx.Add(named("a", 1, task.Queued), nil)
		return err
	})
	if err == nil {
		t.Error("Add(a, revision 1) again = nil; want an error")
	}
}

// Row 21: the same content is known however long ago it came (AINL-55).
func TestContentIsKnownInWhicheverRevisionItCame(t *testing.T) {
	l := open(t)
	add(t, l, named("a", 1, task.Done), named("a", 2, task.Done), named("b", 1, task.Done))
	update(t, l, func(tx *ledger.Tx) error {
		for _, c := range []struct {
			id   envelope.ID
			hash string
			want int
		}{
			{"a", named("a", 1, "").Hash, 1},
			{"a", named("a", 2, "").Hash, 2},
			{"b", named("a", 2, "").Hash, 0},
			{"c", named("a", 1, "").Hash, 0},
		} {
			got, ok, err := tx.Known(c.id, c.hash)
			if err != nil || got != c.want || ok != (c.want > 0) {
				t.Errorf("Known(%s, %s) = %d, %v, %v; want %d", c.id, c.hash, got, ok, err, c.want)
			}
		}
		return nil
	})
}

// With resend: refuse, a corrected envelope is refused for an executed id; where
// no agent ever began, it must get its chance.
func TestATaskIsExecutedOnceARunOfItMayHaveBegun(t *testing.T) {
	l := open(t)
	begin := func(tx *ledger.Tx, seq int64) error {
		_, err := tx.Move(seq, task.Queued, 0, task.Change{To: task.Running, Attempt: 1})
		return errors.Join(err, tx.StartRun(task.Run{Task: seq, Attempt: 1, ID: "r", Intent: noon}))
	}
	leave := func(tx *ledger.Tx, seq int64, to task.State) error {
		_, err := tx.Move(seq, task.Running, 1, task.Change{To: to})
		return err
	}
	for id, c := range map[envelope.ID]struct {
		do   func(tx *ledger.Tx, seq int64) error
		want bool
	}{
		"queued":  {func(*ledger.Tx, int64) error { return nil }, false},
		"running": {begin, true},
		"void": {func(tx *ledger.Tx, seq int64) error {
			return errors.Join(begin(tx, seq), leave(tx, seq, task.Queued), tx.VoidRun(seq, 1))
		}, false},
		"never began": {func(tx *ledger.Tx, seq int64) error {
			return errors.Join(begin(tx, seq), leave(tx, seq, task.Queued))
		}, false},
		"spawn failed": {func(tx *ledger.Tx, seq int64) error {
			return errors.Join(begin(tx, seq), tx.FinishRun(task.Run{Task: seq, Attempt: 1, Finished: noon}), leave(tx, seq, task.Done))
		}, false},
		"ended": {func(tx *ledger.Tx, seq int64) error {
			return errors.Join(begin(tx, seq), tx.FinishRun(task.Run{Task: seq, Attempt: 1, Started: noon, Finished: noon}), leave(tx, seq, task.Done))
		}, true},
		"has a process": {func(tx *ledger.Tx, seq int64) error {
			return errors.Join(begin(tx, seq), tx.SetProcess(seq, 1, 7, 1, "boot"), leave(tx, seq, task.Queued))
		}, true},
		"lost": {func(tx *ledger.Tx, seq int64) error {
			return errors.Join(begin(tx, seq), tx.FinishRun(task.Run{Task: seq, Attempt: 1, Finished: noon, Cause: "lost"}), leave(tx, seq, task.Done))
		}, true},
	} {
		seq := add(t, l, named(id, 1, task.Queued))[0]
		update(t, l, func(tx *ledger.Tx) error {
			if err := c.do(tx, seq); err != nil {
				return err
			}
			if got, err := tx.Executed(id); err != nil || got != c.want {
				t.Errorf("Executed(%s) = %v, %v; want %v", id, got, err, c.want)
			}
			return nil
		})
	}
}

func TestWhatIsNotThereIsUnknown(t *testing.T) {
	l, ctx := open(t), context.Background()
	seq := add(t, l, newTask(1))[0]
	_, noTask := l.Task(ctx, seq+1)
	_, noRaw := l.Raw(ctx, seq+1)
	_, noResult := l.Result(ctx, seq)
	for what, err := range map[string]error{"Task": noTask, "Raw": noRaw, "Result": noResult} {
		if !errors.Is(err, ledger.ErrUnknown) {
			t.Errorf("%s() = %v; want ErrUnknown", what, err)
		}
	}
}
