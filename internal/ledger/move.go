package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"mailboxd/envelope"
)

// A Change is what Move makes of a task. Reasons and Until become exactly
// what is said here; every other zero field leaves what was there.
type Change struct {
	To      State
	Attempt int       // the attempt that begins
	Reasons []Reason  // why it is held from now on
	Until   time.Time // when that ends by itself

	Agent  string          // who has it, when that was decided anew
	Status envelope.Status // how it ended
	Kind   envelope.Kind   // what went wrong
	Result []byte          // the bytes of its result file
}

// Move changes a task that is in this state and attempt, and reports whether
// it was. When somebody else was first nothing changes. A task that is Done
// is over, and no Move finds it. A move to Done sets Finished, and a Result
// its sum. A Result that takes the place of one in Review leaves that with its
// approval, where Withheld finds it.
func (tx *Tx) Move(seq int64, from State, attempt int, c Change) (bool, error) {
	moved, err := tx.move(seq, from, attempt, c)
	if err != nil {
		return false, fmt.Errorf("move task %d from %s to %s: %w", seq, from, c.To, err)
	}
	return moved, nil
}

func (tx *Tx) move(seq int64, from State, attempt int, c Change) (bool, error) {
	if from == Done {
		return false, nil
	}
	if c.Attempt == 0 {
		c.Attempt = attempt
	}
	var (
		finished time.Time
		sum      string
	)
	if c.To == Done {
		finished = time.Now()
	}
	if c.Result != nil {
		digest := sha256.Sum256(c.Result)
		sum = hex.EncodeToString(digest[:])
	}
	moved, err := tx.alter(&tx.rows.tasks, `UPDATE tasks SET state = ?, attempt = ?, reasons = ?, until = ?,
		agent = coalesce(nullif(?, ''), agent), status = coalesce(nullif(?, ''), status), kind = coalesce(nullif(?, ''), kind),
		finished = coalesce(?, finished), result_sum = coalesce(nullif(?, ''), result_sum)
		WHERE seq = ? AND state = ? AND attempt = ?`,
		string(c.To), c.Attempt, joinReasons(c.Reasons), micros(c.Until), c.Agent, string(c.Status), string(c.Kind),
		micros(finished), sum, seq, string(from), attempt)
	if err != nil || !moved || c.Result == nil {
		return moved, err
	}
	if from == Review {
		if err := tx.keepAnswer(seq); err != nil {
			return false, err
		}
	}
	if from == Running && attempt == 1 {
		return true, tx.rows.add(&tx.rows.results, seq, c.Result) // no run before it left one
	}
	_, err = tx.exec("INSERT INTO results (task, body) VALUES (?, ?) ON CONFLICT (task) DO UPDATE SET body = excluded.body", seq, c.Result)
	return err == nil, err
}

// MarkPut remembers that the result file of a revision is in place.
func (tx *Tx) MarkPut(seq int64) error {
	return tx.mark("put", "UPDATE tasks SET put = 1 WHERE seq = ?", seq)
}

// MarkDelivered remembers that the callbacks of a revision are done.
func (tx *Tx) MarkDelivered(seq int64) error {
	return tx.mark("delivered", "UPDATE tasks SET delivered = 1 WHERE seq = ?", seq)
}

// MarkSettled remembers that a revision has nothing to put or to deliver.
func (tx *Tx) MarkSettled(seq int64) error {
	if err := tx.rows.add(&tx.rows.settled, seq); err != nil {
		return fmt.Errorf("mark task %d settled: %w", seq, err)
	}
	return nil
}

// MarkDisplaced remembers that the result of the revision before this one has
// gone to the history.
func (tx *Tx) MarkDisplaced(seq int64) error {
	return tx.mark("displaced", "UPDATE tasks SET replaces = 0 WHERE seq = ?", seq)
}

func (tx *Tx) mark(what, query string, seq int64) error {
	if _, err := tx.exec(query, seq); err != nil {
		return fmt.Errorf("mark task %d %s: %w", seq, what, err)
	}
	return nil
}
