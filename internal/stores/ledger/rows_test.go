package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// Rows wait to be written together, and no reader sees a difference.
func TestATransactionSeesWhatItHasAdded(t *testing.T) {
	l, ctx := open(t), context.Background()
	const many = 151 // two statements of 64, two of 8, and seven
	update(t, l, func(tx *ledger.Tx) error {
		for n := range many {
			row := newTask(n)
			seq, err := tx.Add(row, []byte(row.ID))
			if err != nil {
				return err
			}
			if err := tx.Log(task.Event{Time: noon, Kind: "one", Task: row.ID, Revision: row.Revision, Of: seq}); err != nil {
				return err
			}
			if n%50 != 0 {
				continue
			}
			if last, ok, err := tx.Latest(row.ID); err != nil || !ok || last.Seq != seq {
				t.Errorf("Latest(%s) = %d, %v, %v; want %d, which was just added", row.ID, last.Seq, ok, err, seq)
			}
			if err := tx.Log(task.Event{Time: noon, Kind: "two", Task: row.ID, Revision: row.Revision}); err != nil {
				return err
			}
		}
		return nil
	})
	tasks, err := l.Tasks(ctx, ledger.Filter{})
	if err != nil || len(tasks) != many {
		t.Fatalf("Tasks() = %d tasks, %v; want %d", len(tasks), err, many)
	}
	events, err := l.Events(ctx, "", 0, 1000)
	if err != nil || len(events) != many+4 {
		t.Fatalf("Events() = %d events, %v; want %d", len(events), err, many+4)
	}
	for n, at := 0, 0; n < many; n++ {
		row := tasks[n]
		if raw, err := l.Raw(ctx, row.Seq); err != nil || string(raw) != string(row.ID) || row.ID != newTask(n).ID {
			t.Errorf("task %d is %s with %q, %v; want %s with its own line", n, row.ID, raw, err, newTask(n).ID)
		}
		want := []task.Kind{"one"}
		if n%50 == 0 {
			want = append(want, "two")
		}
		for _, kind := range want {
			if e := events[at]; e.Kind != kind || e.Task != row.ID || e.Revision != row.Revision {
				t.Errorf("event %d = %s of %s; want %s of %s", at, e.Kind, e.Task, kind, row.ID)
			}
			at++
		}
	}
}

func TestARowThatCannotBeWrittenFailsItsFunctionAlone(t *testing.T) {
	l, ctx := open(t), context.Background()
	add(t, l, named("a", 1, task.Done))
	for name, fn := range map[string]func(*ledger.Tx) error{
		"at the end": func(tx *ledger.Tx) error {
			_, err := tx.Add(named("a", 1, task.Queued), nil)
			return err
		},
		"unnoticed": func(tx *ledger.Tx) error {
			_, _ = tx.Add(named("a", 1, task.Queued), nil)
			_, _, _ = tx.Latest("a")
			return nil
		},
	} {
		if err := l.Update(ctx, fn); err == nil {
			t.Errorf("%s: Update() = nil; want that a has that revision", name)
		}
		seq := add(t, l, named(envelope.ID(fmt.Sprint("after ", name)), 1, task.Queued))[0]
		if _, err := l.Task(ctx, seq); err != nil {
			t.Errorf("%s: what came next is lost: %v", name, err)
		}
	}
	revisions, err := l.Revisions(ctx, "a")
	if err != nil || len(revisions) != 1 || revisions[0].State != task.Done {
		t.Errorf("Revisions(a) = %v, %v; want the first one alone", revisions, err)
	}
}

func TestATaskThatWasNotKeptLeavesNothing(t *testing.T) {
	l, ctx := open(t), context.Background()
	no := errors.New("no")
	err := l.Update(ctx, func(tx *ledger.Tx) error {
		if _, err := tx.Add(newTask(1), nil); err != nil {
			return err
		}
		return no
	})
	if !errors.Is(err, no) {
		t.Errorf("Update() = %v; want %v", err, no)
	}
	add(t, l, newTask(2))
	if tasks, err := l.Tasks(ctx, ledger.Filter{}); err != nil || len(tasks) != 1 || tasks[0].ID != newTask(2).ID {
		t.Errorf("Tasks() = %v, %v; want the second alone", ids(tasks), err)
	}
}

func TestManyAreLookedUpAtOnce(t *testing.T) {
	l := open(t)
	var rows []task.Task
	var asked []envelope.ID
	for n := range 75 {
		rows = append(rows, newTask(n))
		asked = append(asked, newTask(n).ID, envelope.ID(fmt.Sprint("never seen ", n)))
	}
	second := newTask(0)
	second.Revision = 2
	add(t, l, append(rows, second)...)
	update(t, l, func(tx *ledger.Tx) error {
		found, err := tx.Latests(append(asked, asked...))
		if err != nil || len(found) != len(rows) {
			t.Errorf("Latests() = %d tasks, %v; want %d", len(found), err, len(rows))
		}
		for _, row := range rows {
			want, _, err := tx.Latest(row.ID)
			if err != nil || found[row.ID].Seq != want.Seq || found[row.ID].Revision != want.Revision {
				t.Errorf("Latests()[%s] = %+v; want as Latest has it: %+v, %v", row.ID, found[row.ID], want, err)
			}
		}
		return nil
	})
}
