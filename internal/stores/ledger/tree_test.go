package ledger_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// CLUTCH-05, CLUTCH-23: one tree is in one run, whatever the tasks below the first one are called.
func TestATreeOfTasksIsInTheRunOfItsFirstTask(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l, ctx := openAt(t, path), context.Background()
	below := func(id string, parent int64, depth int) task.Task {
		t := named(envelope.ID(id), 1, task.Queued)
		t.Parent, t.Depth = parent, depth
		return t
	}
	clutch := named("first", 1, task.Done)
	clutch.Dialect = envelope.CLowl
	seqs := add(t, l, clutch, named("plain", 1, task.Done))
	again := clutch
	again.Revision = 2
	seqs = append(seqs, add(t, l, below("child", seqs[0], 1), below("part", seqs[1], 1), again)...)
	seqs = append(seqs, add(t, l, below("grandchild", seqs[2], 2), below("later", seqs[4], 1))...)
	update(t, l, func(tx *ledger.Tx) error {
		if err := tx.SetRun("first", "run_1"); err != nil {
			return err
		}
		return tx.SetRun("plain", "plain")
	})
	want := []string{"run_1", "plain", "run_1", "plain", "run_1", "run_1", "run_1"}
	for _, l := range []*ledger.Ledger{l, openAt(t, copyOf(t, path, "", 0))} {
		for i, seq := range seqs {
			row, err := l.Task(ctx, seq)
			if err != nil {
				t.Fatal(err)
			}
			if run, err := l.RunOf(ctx, row); run != want[i] || err != nil {
				t.Errorf("RunOf(%s) = %q, %v; want %q", row.ID, run, err, want[i])
			}
			update(t, l, func(tx *ledger.Tx) error {
				if run, err := tx.RunOf(row); run != want[i] || err != nil {
					t.Errorf("Tx.RunOf(%s) = %q, %v; want %q", row.ID, run, err, want[i])
				}
				return nil
			})
		}
		tree := []envelope.ID{"first", "child", "first", "grandchild", "later"}
		for name, want := range map[string][]envelope.ID{
			"run_1": tree, "first": tree, "child": tree, "plain": {"plain", "part"}, "part": {"plain", "part"}, "none": nil,
		} {
			_, rows, err := l.InRun(ctx, name)
			var ids []envelope.ID
			for _, row := range rows {
				ids = append(ids, row.ID)
			}
			if errors.Is(err, ledger.ErrUnknown) != (name == "none") || !slices.Equal(ids, want) {
				t.Errorf("InRun(%s) = %v, %v; want %v", name, ids, err, want)
			}
		}
	}
}
