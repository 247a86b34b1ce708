package ledger_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// CLUTCH-51, CLUTCH-52, CLUTCH-84.
func TestCommandsAndMessageIDsAreKnownAfterAPowerCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l, ctx := openAt(t, path), context.Background()
	add(t, l, named("first", 1, task.Running), named("second", 1, task.Held), named("third", 1, task.Done))
	want := task.Command{Sender: "ui", Run: "run_1", Key: "k", Hash: "h1", Task: "first"}
	update(t, l, func(tx *ledger.Tx) error {
		refused := want
		refused.Task, refused.Hash = "refused", "h0"
		return errors.Join(tx.SetCommand(refused), tx.SetCommand(want), tx.Follow("second", "first"), tx.Follow("third", "first"),
			tx.SetMessageHash("run_1", "msg_1", "h1"), tx.SetMessageHash("run_1", "msg_1", "h2"), tx.SetMessageHash("run_2", "msg_1", "h3"))
	})
	l = openAt(t, copyOf(t, path, "", 0))
	update(t, l, func(tx *ledger.Tx) error {
		if got, found, err := tx.Command("ui", "run_1", "k"); got != want || !found || err != nil {
			t.Errorf("Command() = %+v, %t, %v; want %+v", got, found, err, want)
		}
		for _, other := range []task.Command{{Sender: "ken", Run: "run_1", Key: "k"}, {Sender: "ui", Run: "run_2", Key: "k"}, {Sender: "ui", Run: "run_1", Key: "l"}} {
			if _, found, err := tx.Command(other.Sender, other.Run, other.Key); found || err != nil {
				t.Errorf("Command(%+v) = %t, %v; want none", other, found, err)
			}
		}
		for run, want := range map[string]string{"run_1": "h1", "run_2": "h3", "run_3": ""} {
			if got, _, err := tx.MessageHash(run, "msg_1"); got != want || err != nil {
				t.Errorf("MessageHash(%s) = %q, %v; want %q", run, got, err, want)
			}
		}
		return nil
	})
	open, err := l.Followers(ctx, "first")
	if err != nil || len(open) != 1 || open[0].ID != "second" {
		t.Errorf("Followers() = %v, %v; want second alone", open, err)
	}
	for id, want := range map[envelope.ID]envelope.ID{"second": "first", "first": ""} {
		if got, found, err := l.Leader(ctx, id); got != want || found != (want != "") || err != nil {
			t.Errorf("Leader(%s) = %q, %t, %v; want %q", id, got, found, err, want)
		}
	}
}
