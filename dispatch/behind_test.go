package dispatch_test

import (
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// A daemon that is killed while it cancels a task may have ended a later revision that
// waits, and not the earlier one that is in hand.

// cancelledBehind is an engine with an answer in review, and a later revision of its
// task that was cancelled alone.
func cancelledBehind(t *testing.T) *engine {
	e := inReview(t)
	e.send("t1", "quick", `"metadata":{"n":2}`)
	later := e.await("t1", task.Received)
	e.must(e.parts.Ledger.Update(t.Context(), func(tx *ledger.Tx) error {
		change := task.Change{To: task.Done, Status: envelope.Stopped, Kind: envelope.Cancelled, Result: []byte("{}")}
		if _, err := tx.Move(later.Seq, task.Received, 0, change); err != nil {
			return err
		}
		return tx.MarkPut(later.Seq, true)
	}))
	return e
}

func TestARevisionWaitsBehindOneInHandAlsoWhenAnotherBetweenThemIsOver(t *testing.T) {
	e := cancelledBehind(t)
	e.send("t1", "quick", `"metadata":{"n":3}`)
	if row := e.row("t1"); row.Revision != 3 || row.State != task.Received {
		t.Errorf("revision %d is %s; want 3, received", row.Revision, row.State)
	}
}

func TestARetryWaitsBehindAnEarlierRevisionInHand(t *testing.T) {
	e := cancelledBehind(t)
	e.must(e.Retry(t.Context(), "t1", me))
	if row := e.row("t1"); row.Revision != 3 || row.State != task.Received {
		t.Errorf("revision %d is %s; want 3, received", row.Revision, row.State)
	}
}
