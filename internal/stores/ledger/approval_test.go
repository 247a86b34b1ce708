package ledger_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

func TestWhatWasAskedAndSaidIsRemembered(t *testing.T) {
	l := open(t)
	seq := add(t, l, named("t1", 1, task.Held))[0]
	before := task.Consent{Task: seq, Stage: envelope.ApprovalPre, Digest: "d1", Plan: []byte(`{"command":["x"]}`), Approver: "ada", Asked: noon, Expires: noon.Add(time.Hour)}
	after := task.Consent{Task: seq, Stage: envelope.ApprovalPost, Digest: "d2", Asked: noon.Add(time.Minute)}
	update(t, l, func(tx *ledger.Tx) error { return errors.Join(tx.Ask(before), tx.Ask(after)) })

	var asked task.Consent
	update(t, l, func(tx *ledger.Tx) (err error) {
		list, err := tx.Approvals(seq)
		asked = list[0]
		return err
	})
	said := asked
	said.Decision, said.Decided, said.Decider, said.Note, said.Expires = task.Approved, noon.Add(time.Second), "ada", "go on", noon.Add(2*time.Hour)
	for _, want := range []bool{true, false} { // the second time it is decided
		update(t, l, func(tx *ledger.Tx) error {
			decided, err := tx.Decide(task.Undecided, said)
			if decided != want {
				t.Errorf("Decide = %v; want %v", decided, want)
			}
			return err
		})
	}
	list, err := l.Approvals(t.Context(), seq)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]task.Consent{said, after}, list, cmpopts.IgnoreFields(task.Consent{}, "Seq")); diff != "" {
		t.Errorf("approvals are (-want +got):\n%s", diff)
	}
	last, found, err := l.Consent(t.Context(), seq, envelope.ApprovalPost, "")
	if err != nil || !found || last.Digest != "d2" {
		t.Errorf("Consent(post) = %+v, %v, %v; want the one after the run", last, found, err)
	}
	if _, found, err := l.Consent(t.Context(), seq+1, envelope.ApprovalPre, ""); found || err != nil {
		t.Errorf("Consent(another task) = %v, %v; want none", found, err)
	}
}

func TestAnAnswerThatIsNotShownIsKeptAsLongAsBodiesAre(t *testing.T) {
	l := open(t)
	row := named("t1", 1, task.Running)
	row.Attempt = 1
	seq := add(t, l, row)[0]
	update(t, l, func(tx *ledger.Tx) error {
		if _, err := tx.Move(seq, task.Running, 1, task.Change{To: task.Review, Result: []byte("answer")}); err != nil {
			return err
		}
		return tx.Ask(task.Consent{Task: seq, Stage: envelope.ApprovalPost, Asked: noon})
	})
	if kept, err := l.Withheld(t.Context(), seq); !errors.Is(err, ledger.ErrUnknown) {
		t.Errorf("Withheld(in review) = %s, %v; want ErrUnknown", kept, err)
	}
	update(t, l, func(tx *ledger.Tx) error {
		_, err := tx.Move(seq, task.Review, 1, task.Change{To: task.Done, Result: []byte("denied")})
		return errors.Join(err, tx.MarkPut(seq, true))
	})
	kept, err := l.Withheld(t.Context(), seq)
	if err != nil || string(kept) != "answer" {
		t.Errorf("Withheld = %s, %v; want the answer", kept, err)
	}
	if shown, err := l.Result(t.Context(), seq); err != nil || string(shown) != "denied" {
		t.Errorf("Result = %s, %v; want what took its place", shown, err)
	}
	update(t, l, func(tx *ledger.Tx) error {
		_, _, err := tx.DropBodies(time.Now().Add(time.Hour), 0, 10)
		return err
	})
	if kept, err := l.Withheld(t.Context(), seq); !errors.Is(err, ledger.ErrUnknown) {
		t.Errorf("Withheld after retention = %s, %v; want ErrUnknown", kept, err)
	}
}
