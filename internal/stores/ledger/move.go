package ledger

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"mailboxd/internal/decisions/task"
)

// Move changes a task that is in this state and attempt, and reports whether
// it was. If another move came first, nothing changes. No Move finds a task that
// is Done. A move to Done sets Finished, and a Result
// its sum. A Result that takes the place of one in Review leaves that with its
// approval, where Withheld finds it.
func (tx *Tx) Move(seq int64, from task.State, attempt int, c task.Change) (moved bool, err error) {
	defer wrap(&err, "move task %d from %s to %s", seq, from, c.To)
	if from == task.Done {
		return false, nil
	}
	t, found, err := tx.Task(seq)
	if err != nil || !found || t.State != from || t.Attempt != attempt {
		return false, err
	}
	if from == task.Review && c.Result != nil {
		if err := tx.keepAnswer(seq); err != nil {
			return false, err
		}
	}
	if err := setWaits(tx, seq, from, t.Reasons, c); err != nil {
		return false, err
	}
	t.State, t.Reasons, t.Until, t.Due = c.To, c.Reasons, exact(c.Until), exact(c.Due)
	t.Attempt = cmp.Or(c.Attempt, t.Attempt)
	t.Agent, t.Status, t.Kind = cmp.Or(c.Agent, t.Agent), cmp.Or(c.Status, t.Status), cmp.Or(c.Kind, t.Kind)
	if c.To == task.Done {
		t.Finished = exact(time.Now())
	}
	if c.Result != nil {
		digest := sha256.Sum256(c.Result)
		t.ResultSum = hex.EncodeToString(digest[:])
		if _, err := tx.exec(resultInsert, seq, c.Result); err != nil {
			return false, err
		}
		if err := nameArtifacts(tx, seq, c.Result); err != nil {
			return false, err
		}
	}
	if err := tx.setTask(t); err != nil {
		return false, err
	}
	tx.counts.add(t.Requester, from, -1)
	tx.counts.add(t.Requester, c.To, 1)
	return true, nil
}

// MarkPut records that the result file of a revision is in place, and, if so, that nothing is left to
// deliver.
func (tx *Tx) MarkPut(seq int64, delivered bool) error {
	if delivered {
		return tx.mark("settled", seq, "UPDATE tasks SET put = 1, delivered = 1 WHERE seq = ?")
	}
	return tx.mark("put", seq, "UPDATE tasks SET put = 1 WHERE seq = ?")
}

// MarkDisplaced records that the result of the revision before this one was moved
// to the history.
func (tx *Tx) MarkDisplaced(seq int64) error {
	return tx.mark("displaced", seq, "UPDATE tasks SET replaces = 0 WHERE seq = ?")
}

func (tx *Tx) mark(what string, seq int64, update string) error {
	delete(tx.tasks, seq)
	if _, err := tx.exec(update, seq); err != nil {
		return fmt.Errorf("mark task %d %s: %w", seq, what, err)
	}
	return nil
}
