package ledger_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

func TestUnfinishedTasksComeInTheirOrderPageAfterPage(t *testing.T) {
	l := open(t)
	add(t, l,
		named("a", 1, task.Done), named("b", 1, task.Held), named("a", 2, task.Received), named("c", 2, task.Queued),
		named("d", 1, task.Running), named("e", 1, task.Done), named("f", 1, task.Review), named("g", 1, task.Waiting))
	var got []string
	for after := int64(0); ; {
		page, err := l.Unfinished(t.Context(), after, 2)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		got = append(got, ids(page)...)
		after = page[len(page)-1].Seq
	}
	if want := []string{"b.1", "a.2", "c.2", "d.1", "f.1", "g.1"}; !cmp.Equal(got, want) {
		t.Errorf("Unfinished() = %v; want %v", got, want)
	}
}

// Whatever has more to mind than its turn is read whole.
func TestWhatOnlyWaitsForItsTurnIsNoUnfinishedTask(t *testing.T) {
	l := open(t)
	queued := func(id envelope.ID, change func(*task.Task)) task.Task {
		row := named(id, 1, task.Queued)
		change(&row)
		return row
	}
	add(t, l,
		queued("plain", func(*task.Task) {}),
		named("held", 1, task.Held),
		queued("child", func(t *task.Task) { t.Parent = 1 }),
		queued("said", func(t *task.Task) { t.Dialect = envelope.CLowl }),
		queued("again", func(t *task.Task) { t.Attempt = 1 }),
		queued("moving", func(t *task.Task) { t.Replaces = true }),
		queued("urgent", func(t *task.Task) { t.Priority = 5 }),
		named("plain", 2, task.Queued),
		queued("other", func(t *task.Task) { t.Agent, t.Requester, t.Deadline = "b", "s", time.Now() }), // the deadline is in the row
	)
	rows, err := l.Unfinished(t.Context(), 0, 10)
	if want := []string{"held.1", "child.1", "said.1", "again.1", "moving.1", "urgent.1", "plain.2"}; err != nil || !cmp.Equal(ids(rows), want) {
		t.Errorf("Unfinished() = %v, %v; want %v", ids(rows), err, want)
	}
	turns, err := l.QueuedTasks(t.Context(), 0, 10)
	if err != nil || len(turns) != 2 || turns[0].Seq != 1 || turns[1].Agent != "b" || turns[1].Requester != "s" {
		t.Errorf("QueuedTasks() = %+v, %v; want those of plain and other", turns, err)
	}
	if turns, err = l.QueuedTasks(t.Context(), 1, 1); err != nil || len(turns) != 1 || turns[0].Requester != "s" {
		t.Errorf("QueuedTasks(after the first, 1) = %+v, %v; want that of other", turns, err)
	}
}

func TestADoneTaskIsUnsettledUntilItIsPutAndDelivered(t *testing.T) {
	l := open(t)
	seqs := add(t, l, named("a", 1, task.Done), named("b", 1, task.Done), named("c", 1, task.Done), named("d", 1, task.Running))
	check := func(want ...string) {
		t.Helper()
		got, err := l.Unsettled(t.Context(), 0, 10)
		if err != nil || !cmp.Equal(ids(got), want) {
			t.Errorf("Unsettled() = %v, %v; want %v", ids(got), err, want)
		}
	}
	check("a.1", "b.1", "c.1")
	update(t, l, func(tx *ledger.Tx) error { return tx.MarkPut(seqs[0], false) })
	update(t, l, func(tx *ledger.Tx) error { return tx.MarkPut(seqs[1], true) })
	check("a.1", "c.1")
	update(t, l, func(tx *ledger.Tx) error { return tx.MarkPut(seqs[0], true) })
	check("c.1")
}

func TestFinalsAreTheLatestRevisionsThatHaveTheirResults(t *testing.T) {
	l := open(t)
	tasks := []task.Task{
		named("a", 1, task.Running), named("a", 2, task.Running), named("b", 1, task.Running), named("b", 2, task.Held),
		named("c", 1, task.Running), named("d", 1, task.Running), named("e", 1, task.Running),
	}
	seqs := add(t, l, tasks...)
	for i, seq := range seqs {
		if tasks[i].State == task.Running {
			move(t, l, seq, task.Running, 0, task.Change{To: task.Done, Result: []byte("x")})
		}
	}
	move(t, l, add(t, l, named("f", 1, task.Queued))[0], task.Queued, 0, task.Change{To: task.Done}) // without one
	for _, seq := range []int64{seqs[0], seqs[1], seqs[2], seqs[4], seqs[6]} {                       // d is not put yet
		update(t, l, func(tx *ledger.Tx) error { return tx.MarkPut(seq, false) })
	}
	want := []ledger.Final{{Seq: seqs[1], ID: "a"}, {Seq: seqs[4], ID: "c"}, {Seq: seqs[6], ID: "e"}}
	if got, err := l.Finals(t.Context(), 0, 10); err != nil || !cmp.Equal(got, want) {
		t.Fatalf("Finals() = %v, %v; want %v", got, err, want)
	}
	if got, err := l.Finals(t.Context(), seqs[1], 1); err != nil || !cmp.Equal(got, want[1:2]) {
		t.Errorf("Finals(next page of one) = %v, %v; want %v", got, err, want[1:2])
	}
}

func TestADisplacedResultIsRemembered(t *testing.T) {
	l := open(t)
	row := named("a", 2, task.Queued)
	row.Replaces = true
	seq := add(t, l, row)[0]
	update(t, l, func(tx *ledger.Tx) error { return tx.MarkDisplaced(seq) })
	if got, err := l.Task(t.Context(), seq); err != nil || got.Replaces {
		t.Errorf("Task() = replaces %v, %v; want false", got.Replaces, err)
	}
}
