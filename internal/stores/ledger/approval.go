package ledger

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

const consentColumns = "seq, task, stage, digest, plan, approver, asked, expires, decision, decided, decider, note, proof"

func scanConsent(r row) (c task.Consent, err error) {
	var proof []byte
	err = r.Scan(&c.Seq, &c.Task, &c.Stage, &c.Digest, (*[]byte)(&c.Plan), &c.Approver, stamp{&c.Asked}, stamp{&c.Expires},
		&c.Decision, stamp{&c.Decided}, &c.Decider, &c.Note, &proof)
	if len(c.Plan) == 0 {
		c.Plan = nil
	}
	if len(proof) > 0 && json.Unmarshal(proof, &c.Proof) != nil {
		c.Proof = task.Proof{Kind: "unreadable"} // proves nothing
	}
	return c, err
}

// Ask records that a person is asked from now on: Task to Expires of c.
func (tx *Tx) Ask(c task.Consent) error {
	_, err := tx.exec(`INSERT INTO approvals (task, stage, digest, plan, approver, asked, expires, decision, decider, note)
		VALUES (?, ?, ?, ?, ?, ?, ?, '', '', '')`,
		c.Task, string(c.Stage), c.Digest, string(c.Plan), c.Approver, c.Asked.UnixMicro(), micros(c.Expires))
	if err != nil {
		return fmt.Errorf("ask for approval of task %d: %w", c.Task, err)
	}
	return nil
}

// Decide records the decision about the consent with c's Seq: Decision, Decided,
// Decider, Note, Proof and Expires of c. It reports whether the decision before was
// from; if another decision came first, nothing changes.
func (tx *Tx) Decide(from task.Decision, c task.Consent) (bool, error) {
	proof, err := proofText(c.Proof)
	if err != nil {
		return false, err
	}
	decided, err := tx.change(`UPDATE approvals SET decision = ?, decided = ?, decider = ?, note = ?, expires = ?, proof = ?
		WHERE seq = ? AND decision = ?`,
		string(c.Decision), micros(c.Decided), c.Decider, c.Note, micros(c.Expires), proof, c.Seq, string(from))
	if err != nil {
		return false, fmt.Errorf("decide approval %d of task %d: %w", c.Seq, c.Task, err)
	}
	return decided, nil
}

// proofText returns a proof as the table has it: "" for none.
func proofText(p task.Proof) (string, error) {
	if p == (task.Proof{}) {
		return "", nil
	}
	text, err := json.Marshal(p)
	if err != nil {
		return "", fmt.Errorf("encode proof: %w", err)
	}
	return string(text), nil
}

const consentQuery = "SELECT " + consentColumns + " FROM approvals WHERE task = ?1 AND stage = ?2 AND (?3 = '' OR digest = ?3) ORDER BY seq DESC LIMIT 1"

// Consent returns the last question about a revision at a stage, with a digest
// unless it is "", and whether there is one.
func (r *Reader) Consent(ctx context.Context, seq int64, stage envelope.Approval, digest string) (task.Consent, bool, error) {
	c, ok, err := first(ctx, r.read, scanConsent, consentQuery, seq, string(stage), digest)
	if err != nil {
		return task.Consent{}, false, fmt.Errorf("look up approval of task %d: %w", seq, err)
	}
	return c, ok, nil
}

// Approvals returns all questions about the revision with this Seq, the first
// one first.
func (r *Reader) Approvals(ctx context.Context, task int64) ([]task.Consent, error) {
	return approvals(ctx, r.read, task)
}

// Approvals returns all questions about the revision with this Seq, the first
// one first.
func (tx *Tx) Approvals(task int64) ([]task.Consent, error) {
	return approvals(background, tx.write, task)
}

func approvals(ctx context.Context, s *statements, task int64) ([]task.Consent, error) {
	list, err := all(ctx, s, scanConsent, "SELECT "+consentColumns+" FROM approvals WHERE task = ? ORDER BY seq", task)
	if err != nil {
		return nil, fmt.Errorf("list approvals of task %d: %w", task, err)
	}
	return list, nil
}

// Withheld returns the result of the revision with this Seq that a person
// withheld; ErrUnknown when there is none, or it was removed.
func (r *Reader) Withheld(ctx context.Context, task int64) ([]byte, error) {
	answer, ok, err := first(ctx, r.read, one[[]byte],
		"SELECT answer FROM approvals WHERE task = ? AND answer IS NOT NULL ORDER BY seq DESC LIMIT 1", task)
	return known(answer, ok, err, "read withheld result of task", task)
}

// keepAnswer records the result of a task in review beside the question about it.
func (tx *Tx) keepAnswer(task int64) error {
	_, err := tx.exec(`UPDATE approvals SET answer = (SELECT body FROM results WHERE task = ?1)
		WHERE seq = (SELECT max(seq) FROM approvals WHERE task = ?1 AND stage = 'post')`, task)
	return err
}
