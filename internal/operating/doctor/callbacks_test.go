package doctor

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

func TestDoctorCountsTheCallbacksThatAreNotTriedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l, _, err := ledger.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	want := func(words string) {
		t.Helper()
		reader, err := ledger.OpenReader(path)
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Close()
		d := &checker{}
		if err := d.callbacks(t.Context(), reader); err != nil {
			t.Fatal(err)
		}
		if words == "" && len(d.findings) > 0 || words != "" && (len(d.findings) != 1 || !strings.HasPrefix(d.findings[0].Finding, words)) {
			t.Errorf("findings = %+v; want %q", d.findings, words)
		}
	}
	want("")
	finish(t, l, "retried", task.KindCallbackFailed)
	want("")
	finish(t, l, "left", task.KindCallbackFailed, task.KindCallbackAbandoned)
	want("1 task has a callback that failed and is not tried again; one is left")
	finish(t, l, "again", task.KindCallbackAbandoned, task.KindTaskReleased, task.KindCallbackFailed)
	finish(t, l, "pruned") // by retention
	want("2 tasks have a callback that failed and is not tried again; one is left")
}

// finish adds a finished task that lacks a callback, and its events.
func finish(t *testing.T, l *ledger.Ledger, id envelope.ID, kinds ...task.Kind) {
	t.Helper()
	err := l.Update(t.Context(), func(tx *ledger.Tx) error {
		_, err := tx.Add(task.Task{
			ID: id, Revision: 1, Latest: true, Hash: "h", Dialect: envelope.AINL, Agent: "a", Requester: "r",
			State: task.Done, Put: true, Received: time.Now(),
		}, []byte("{}"))
		for _, kind := range kinds {
			err = errors.Join(err, tx.Log(task.Event{Time: time.Now(), Kind: kind, Task: id, Revision: 1}))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
