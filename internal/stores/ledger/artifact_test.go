package ledger_test

import (
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

const (
	oneDigest   = "1111111111111111111111111111111111111111111111111111111111111111"
	otherDigest = "2222222222222222222222222222222222222222222222222222222222222222"
)

func TestTheLedgerKnowsWhichTasksPublishedAndNameAnArtifact(t *testing.T) {
	l := open(t)
	at := time.UnixMicro(1_000_000)
	var maker, user int64
	update(t, l, func(tx *ledger.Tx) (err error) {
		if maker, err = tx.Add(task.Task{ID: "maker", Revision: 1, State: task.Queued, Received: at}, []byte("{}")); err != nil {
			return err
		}
		user, err = tx.Add(task.Task{ID: "user", Revision: 1, State: task.Queued, Received: at}, []byte(`"artifact:sha256:`+oneDigest+`"`))
		if err != nil {
			return err
		}
		for _, s := range []envelope.Sensitivity{envelope.Confidential, envelope.Public} { // the second is of a later attempt
			if err := tx.Publish(ledger.Artifact{Digest: oneDigest, Task: maker, Sensitivity: s, Name: "out/x", Size: 3, Time: at}); err != nil {
				return err
			}
		}
		_, err = tx.Move(user, task.Queued, 0, task.Change{To: task.Done, Result: []byte(`"artifact:sha256:` + otherDigest + `"`)})
		return err
	})
	rows, err := l.Artifacts(t.Context(), oneDigest)
	if err != nil || len(rows) != 2 {
		t.Fatalf("Artifacts = %+v, %v; want the two tasks", rows, err)
	}
	want := ledger.Artifact{
		Digest: oneDigest, Task: maker, ID: "maker", Published: true, Sensitivity: envelope.Confidential,
		Name: "out/x", Size: 3, Time: at, Retained: true,
	}
	if rows[0] != want || rows[1].Task != user || rows[1].Published || !rows[1].Retained {
		t.Errorf("Artifacts = %+v; want %+v, and then the task that names it", rows, want)
	}
	if rows, err := l.Artifacts(t.Context(), otherDigest); err != nil || len(rows) != 1 || rows[0].Task != user {
		t.Errorf("Artifacts = %+v, %v; want the task whose result names it", rows, err)
	}

	update(t, l, func(tx *ledger.Tx) error { return tx.ForgetArtifact(oneDigest) })
	if rows, err := l.Artifacts(t.Context(), oneDigest); err != nil || len(rows) != 2 {
		t.Errorf("after it was to be forgotten, Artifacts = %+v, %v; want what kept tasks say", rows, err)
	}
}
