package ledger_test

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

func TestAReaderWorksBesideADaemonAndWithoutOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	if _, err := ledger.OpenReader(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("OpenReader(before there is a ledger) = %v; want fs.ErrNotExist", err)
	}
	l, _, err := ledger.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 3; n++ {
		add(t, l, newTask(n))
		beside, err := ledger.OpenReader(path)
		if err != nil {
			t.Fatalf("OpenReader(beside a daemon) = %v; want nil", err)
		}
		if tasks, err := beside.Tasks(t.Context(), ledger.Filter{}); err != nil || len(tasks) != n {
			t.Errorf("Tasks(beside a daemon) = %d, %v; want %d", len(tasks), err, n)
		}
		if err := beside.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}

	for range 2 { // the first may leave files behind
		without, err := ledger.OpenReader(path)
		if err != nil {
			t.Fatalf("OpenReader(without a daemon) = %v; want nil", err)
		}
		if tasks, err := without.Tasks(t.Context(), ledger.Filter{}); err != nil || len(tasks) != 3 {
			t.Errorf("Tasks(without a daemon) = %d, %v; want 3", len(tasks), err)
		}
		if err := without.Close(); err != nil {
			t.Errorf("Close() = %v; want nil", err)
		}
	}
	if _, err := openAt(t, path).Task(t.Context(), 3); err != nil {
		t.Errorf("Task() for the daemon after the readers = %v; want nil", err)
	}
}

func TestAReaderOfSomethingElseSaysSo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	write(t, path, []byte("precious text, and no database at all"))
	if _, err := ledger.OpenReader(path); err == nil {
		t.Error("OpenReader(a text) = nil; want an error")
	}
	if got := contents(t, filepath.Dir(path)); len(got) != 1 {
		t.Errorf("%d files after OpenReader; want the one that was there", len(got))
	}
}

func TestFindPutsTheExactIDFirst(t *testing.T) {
	l := open(t)
	for _, id := range []envelope.ID{"ab", "a", "abc", "abé", "ab\U0010ffff", "ac", "b", "Ab", "a%", "a_"} {
		add(t, l, named(id, 1, task.Done), named(id, 2, task.Done))
	}
	for n := range 20 {
		add(t, l, newTask(n))
	}
	for prefix, want := range map[string][]envelope.ID{
		"ab":     {"ab", "abc", "abé", "ab\U0010ffff"},
		"abc":    {"abc"},
		"abé":    {"abé"},
		"ab\xc3": {"abé"}, // half a character is a prefix too
		"a%":     {"a%"},
		"a_":     {"a_"},
		"x":      nil,
	} {
		got, err := l.Find(t.Context(), prefix)
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("Find(%q) = %q, %v; want %q", prefix, got, err, want)
		}
	}
	if got, err := l.Find(t.Context(), "task-"); err != nil || len(got) != 8 {
		t.Errorf("Find(task-) = %d ids, %v; want a few", len(got), err)
	}
}

func TestTasksPassTheFilter(t *testing.T) {
	l := open(t)
	rows := []task.Task{
		named("a", 1, task.Done), named("a", 2, task.Queued), named("b", 1, task.Held),
		named("c", 1, task.Done), named("d", 1, task.Running), named("e", 1, task.Done),
	}
	rows[3].Put, rows[5].Put, rows[5].Delivered = true, true, true
	rows[3].Status, rows[5].Status, rows[5].Kind, rows[5].Type = envelope.OK, envelope.Failed, "timeout", "review"
	rows[2].Reasons, rows[4].Reasons = []task.Reason{task.Capacity, task.Operator}, nil
	rows[2].Agent, rows[3].Requester, rows[4].Received = "other", "somebody", noon.AddDate(0, 0, 1)
	add(t, l, rows...)
	for what, c := range map[string]struct {
		filter ledger.Filter
		want   []string
	}{
		"everything latest": {ledger.Filter{}, []string{"a.2", "b.1", "c.1", "d.1", "e.1"}},
		"all":               {ledger.Filter{All: true}, []string{"a.1", "a.2", "b.1", "c.1", "d.1", "e.1"}},
		"states":            {ledger.Filter{States: []task.State{task.Held, task.Running}}, []string{"b.1", "d.1"}},
		"agent":             {ledger.Filter{Agent: "other"}, []string{"b.1"}},
		"requester":         {ledger.Filter{Requester: "somebody"}, []string{"c.1"}},
		"since":             {ledger.Filter{Since: noon.AddDate(0, 0, 1)}, []string{"d.1"}},
		"newest done":       {ledger.Filter{States: []task.State{task.Done}, NewestFirst: true, Limit: 1}, []string{"e.1"}},
		"statuses":          {ledger.Filter{Statuses: []envelope.Status{envelope.Failed, envelope.OK}}, []string{"c.1", "e.1"}},
		"reasons":           {ledger.Filter{Reasons: []task.Reason{task.Operator, task.Routing}}, []string{"b.1"}},
		"a part of a word":  {ledger.Filter{Reasons: []task.Reason{task.Operator[1:]}}, nil},
		"kind":              {ledger.Filter{Kind: "timeout"}, []string{"e.1"}},
		"type":              {ledger.Filter{Type: "review"}, []string{"e.1"}},
		"callback failed":   {ledger.Filter{CallbackFailed: true}, []string{"c.1"}},
		"next page":         {ledger.Filter{AfterSeq: 3, Limit: 2}, []string{"c.1", "d.1"}},
		"page before":       {ledger.Filter{AfterSeq: 4, NewestFirst: true}, []string{"b.1", "a.2"}},
	} {
		got, err := l.Tasks(t.Context(), c.filter)
		if err != nil || !cmp.Equal(ids(got), c.want) {
			t.Errorf("%s: Tasks() = %v, %v; want %v", what, ids(got), err, c.want)
		}
	}
}

func TestAReadEndsWithItsContext(t *testing.T) {
	l := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Tasks(ctx, ledger.Filter{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Tasks(ended context) = %v; want context.Canceled", err)
	}
	if _, err := l.Unfinished(ctx, 0, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("Unfinished(ended context) = %v; want context.Canceled", err)
	}
}
