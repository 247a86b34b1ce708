package ledger

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"mailboxd/internal/decisions/task"
)

// dueOf returns all tasks that are due at some time, read in pages.
func dueOf(t *testing.T, l *Ledger) (seqs []int64, at map[int64]int64) {
	t.Helper()
	at = map[int64]int64{}
	for after := (task.Look{}); ; {
		page, err := l.DueTasks(context.Background(), after, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range page {
			seqs, at[row.Task], after = append(seqs, row.Task), row.At.UnixMicro(), row
		}
		if len(page) < 2 {
			return seqs, at
		}
	}
}

// The column of version 21 has what the core says about the tasks of an earlier version.
func TestTasksOfVersion20AreDueWhenTheirTimeComes(t *testing.T) {
	path, script := filepath.Join(t.TempDir(), "ledger.db"), ""
	rows := []struct {
		state, reasons, until, deadline string
		due                             int64
	}{
		{"queued", "", "NULL", "70", 70},
		{"queued", "", "NULL", "NULL", 0},
		{"held", "change_window,paused", "60", "70", 60},
		{"held", "paused", "NULL", "70", 0},
		{"held", "same_command,operator", "60", "70", 70},
		{"held", "capacity", "60", "70", 0}, // a pause
		{"held", "capacity", "60", "NULL", 0},
		{"held", "capacity", "70", "70", 70}, // for budget; the start looks at it
		{"waiting", "", "60", "70", 60},
		{"waiting", "", "NULL", "70", 70},
		{"review", "", "60", "50", 60},
		{"running", "approval", "60", "70", 0},
		{"received", "operator", "60", "70", 0},
		{"done", "", "60", "70", 0},
	}
	want := map[int64]int64{}
	for i, r := range rows {
		script += fmt.Sprintf("INSERT INTO tasks (seq, id, revision, latest, state, attempt, reasons, until, deadline, status, kind, put, delivered, "+
			"replaces, agent, requester, type, dialect, hash, result_sum, file, offset) "+
			"VALUES (%d, 't%[1]d', 1, 1, '%s', 0, '%s', %s, %s, '', '', 0, 0, 0, 'a', 'r', '', 'ainl', 'h', '', '', 0);",
			i+1, r.state, r.reasons, r.until, r.deadline)
		if r.due > 0 {
			want[int64(i+1)] = r.due
		}
	}
	makeVersion(t, path, 20, script)
	l, _, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, got := dueOf(t, l); !maps.Equal(got, want) {
		t.Errorf("tasks are due at %v; want %v", got, want)
	}
}

func TestTasksAreDueInTheirOrder(t *testing.T) {
	l, _, err := Open(filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	noon, seqs := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), make([]int64, 6)
	err = l.Update(t.Context(), func(tx *Tx) (err error) {
		for i, due := range []time.Time{noon.Add(time.Hour), noon, {}, noon, noon, noon.Add(-time.Hour)} {
			row := task.Task{ID: "t", Revision: i + 1, State: task.Held, Due: due}
			if seqs[i], err = tx.Add(row, nil); err != nil {
				return err
			}
		}
		_, err = tx.Move(seqs[4], task.Held, 0, task.Change{To: task.Queued, Due: noon.Add(2 * time.Hour)})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []int64{seqs[5], seqs[1], seqs[3], seqs[0], seqs[4]}
	if got, _ := dueOf(t, l); !slices.Equal(got, want) {
		t.Errorf("tasks are due in the order %v; want %v", got, want)
	}
}
