package ledger

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mailboxd/internal/decisions/task"
)

// With a million tasks done, a start must not look at them: what it asks goes
// by the indexes that hold only the others.
func TestAStartGoesByThePartialIndexes(t *testing.T) {
	l, _, err := Open(filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	open, _ := Filter{States: []task.State{task.Held, task.Queued, task.Running}}.query(taskColumns)
	held, _ := Filter{States: []task.State{task.Held}, Agent: "a"}.query(taskColumns)
	failed, _ := Filter{States: []task.State{task.Done}, CallbackFailed: true, NewestFirst: true, AfterSeq: 9}.query(taskColumns)
	wantPlans(t, l, map[string]string{
		unfinishedQuery:  "tasks_open",
		queuedTasksQuery: "tasks_open",
		unsettledQuery:   "tasks_unsettled",
		unclaimedQuery:   "tasks_open",
		claimedQuery:     "tasks_open",
		open:             "tasks_open",
		held:             "tasks_open",
		failed:           "tasks_unsettled",
		openTalksQuery:   "talks_open",
		dueQuery:         "messages_due",
		heldNamesQuery:   "tasks_held",
		heldQuery:        "tasks_held",
		countHeldQuery:   "tasks_held",
		dueTasksQuery:    "tasks_due (due=? AND rowid>?)",
	})
}

// Each task is written about five times. A list of words in the condition of an index would be made a
// table each time.
func TestAWriteOfATaskMakesNoTableOfTheMoment(t *testing.T) {
	l, _, err := Open(filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, query := range []string{taskInsert, taskUpdate} {
		steps, err := all(t.Context(), l.read, func(r row) (opcode string, err error) {
			var rest [7]any
			return opcode, r.Scan(&rest[0], &opcode, &rest[1], &rest[2], &rest[3], &rest[4], &rest[5], &rest[6])
		}, "EXPLAIN "+query, make([]any, strings.Count(query, "?"))...)
		if err != nil || !slices.Contains(steps, "IdxInsert") {
			t.Fatalf("the steps of %s are %v, %v", query, steps, err)
		}
		if slices.Contains(steps, "OpenEphemeral") {
			t.Errorf("%s makes a table: %v", query, steps)
		}
	}
}

// With a million messages, anyone who looks one up goes to it.
func TestMessagesAreLookedUpByTheirIndexes(t *testing.T) {
	l, _, err := Open(filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	wantPlans(t, l, map[string]string{
		namedQuery:        "messages_message",
		saidQuery:         "messages_hash",
		repliesQuery:      "messages_cause",
		aboutQuery:        "messages_task",
		conversationQuery: "messages_task",
		threadQuery:       "messages_thread",
		traceQuery:        "messages_trace",
		linkedTasksQuery:  "talks_thread",
		offspringQuery:    "tasks_children",
		newsQuery:         "events_task",
		lastHeldQuery:     "events_task",
		heardQuery:        "messages_task",
		cancelledQuery:    "messages_task",
		speechlessQuery:   "talks_thread",
		askedInQuery:      "talks_thread",
		anyNamedQuery:     "messages_message",
		inRunQuery:        "trees_run",
		followersQuery:    "followers_leader",
	})
	wantPlans(t, l, map[string]string{linkedTasksQuery: "talks_trace"})
	for _, query := range []string{inRunQuery, conversationQuery, heardQuery, spokenQuery, offspringQuery, newsQuery, talkQuery} {
		if plan := planOf(t, l, query); strings.Contains(plan, "SCAN t") || strings.Contains(plan, "SCAN messages") {
			t.Errorf("plan of %s = %q; want no table gone through", query, plan)
		}
	}
}

// wantPlans fails the test when a query does not go by its index.
func wantPlans(t *testing.T, l *Ledger, indexes map[string]string) {
	t.Helper()
	for query, index := range indexes {
		if plan := planOf(t, l, query); !strings.Contains(plan, "INDEX "+index) {
			t.Errorf("plan of %s = %q; want it by %s", query, plan, index)
		}
	}
}

func planOf(t *testing.T, l *Ledger, query string) string {
	t.Helper()
	plan, err := all(context.Background(), l.read, func(r row) (step string, err error) {
		var ignored any
		err = r.Scan(&ignored, &ignored, &ignored, &step)
		return step, err
	}, "EXPLAIN QUERY PLAN "+query, slices.Repeat([]any{0}, parameters(query))...)
	if err != nil {
		t.Fatalf("plan of %s: %v", query, err)
	}
	return strings.Join(plan, "; ")
}

// parameters is how many values a query is given.
func parameters(query string) int {
	for n := 3; n > 0; n-- {
		if strings.Contains(query, "?"+strconv.Itoa(n)) {
			return n
		}
	}
	return strings.Count(query, "?")
}

// What version 4 had is there after the step to the talks, and nothing is said
// or open that was not.
func TestVersion4IsBroughtForward(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "ledger.db")
	makeVersion(t, path, 4, `INSERT INTO tasks (seq, id, revision, latest, state, attempt, reasons, status, kind, put, delivered, replaces, agent, requester, type,
		dialect, hash, result_sum, file, offset) VALUES (1, 'old', 1, 1, 'queued', 0, '', '', '', 0, 0, 0, 'a', 'r', '', 'ainl', 'h', '', '', 0);
		INSERT INTO requests VALUES (1, x'7b7d')`)
	l, opened, err := Open(path)
	if err != nil || opened.Aside != "" {
		t.Fatalf("Open() = %+v, %v; want the ledger of version 4", opened, err)
	}
	defer l.Close()
	rows, err := l.Revisions(ctx, "old")
	if err != nil || len(rows) != 1 || rows[0].Agent != "a" {
		t.Fatalf("Revisions() = %v, %v; want the task of version 4", rows, err)
	}
	open, err1 := l.WithOpenNotifications(ctx)
	due, err2 := l.Due(ctx, 0, 10)
	_, talked, err3 := l.Conversation(ctx, rows[0].Seq)
	if err := errors.Join(err1, err2, err3); err != nil || len(open) > 0 || len(due) > 0 || talked {
		t.Errorf("%d open conversations, %d messages due, a conversation %t, %v; want none", len(open), len(due), talked, err)
	}
}

func TestASchemaComesForwardAllTheWayOrNotAtAll(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	makeVersion(t, path, 4, "CREATE TABLE open_tasks (there already)")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if l, _, err := Open(path); err == nil { // the last step makes that table
		t.Fatal(errors.Join(errors.New("Open(a ledger that can't be brought forward) = nil; want an error"), l.Close()))
	}
	after, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(after, before) {
		t.Errorf("the ledger was changed, or %v", err)
	}
}
