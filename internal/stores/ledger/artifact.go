package ledger

import (
	"context"
	"fmt"
	"time"

	"mailboxd/envelope"
)

// An Artifact is what a task has to do with an artifact: it published the artifact, or its request
// or result names it.
type Artifact struct {
	Digest      string
	Task        int64       // its Seq
	ID          envelope.ID // of the task; "" in Publish
	Published   bool
	Sensitivity envelope.Sensitivity // of the task, with all that it is made of
	Name        string               // of the file in the run
	Size        int64
	Time        time.Time
	Retained    bool // the request of the task is kept
}

const artifactInsert = "INSERT INTO artifacts (digest, task, published, sensitivity, name, size, time) VALUES (?, ?, ?, ?, ?, ?, ?) " +
	"ON CONFLICT DO UPDATE SET sensitivity = max(sensitivity, excluded.sensitivity)"

// Publish records that a task published artifacts.
func (tx *Tx) Publish(list ...Artifact) error {
	for _, a := range list {
		_, err := tx.exec(artifactInsert, a.Digest, a.Task, 1, int(a.Sensitivity), a.Name, a.Size, a.Time.UnixMicro())
		if err != nil {
			return fmt.Errorf("record artifact %s: %w", a.Digest, err)
		}
	}
	return nil
}

// nameArtifacts records which artifacts the request or the result of a task names.
func nameArtifacts(tx *Tx, seq int64, body []byte) error {
	for _, digest := range envelope.ArtifactsIn(body) {
		if _, err := tx.exec(artifactInsert, digest, seq, 0, 0, "", 0, 0); err != nil {
			return err
		}
	}
	return nil
}

// ForgetArtifact forgets an artifact that is gone, unless a task that is kept names it or published it.
func (tx *Tx) ForgetArtifact(digest string) error {
	_, err := tx.exec("DELETE FROM artifacts WHERE digest = ? AND NOT EXISTS (SELECT 1 FROM requests r WHERE r.task = artifacts.task)", digest)
	if err != nil {
		return fmt.Errorf("forget artifact %s: %w", digest, err)
	}
	return nil
}

// Artifacts returns what tasks have to do with an artifact, those that published it first.
func (r *Reader) Artifacts(ctx context.Context, digest string) ([]Artifact, error) {
	list, err := all(ctx, r.read, scanArtifact, `
		SELECT a.digest, a.task, coalesce(t.id, ''), a.published, a.sensitivity, a.name, a.size, a.time,
		EXISTS (SELECT 1 FROM requests r WHERE r.task = a.task)
		FROM artifacts a LEFT JOIN tasks t ON t.seq = a.task WHERE a.digest = ? ORDER BY a.published DESC, a.task`, digest)
	if err != nil {
		return nil, fmt.Errorf("read artifact %s: %w", digest, err)
	}
	return list, nil
}

func scanArtifact(r row) (a Artifact, err error) {
	var id string
	var at int64
	err = r.Scan(&a.Digest, &a.Task, &id, &a.Published, &a.Sensitivity, &a.Name, &a.Size, &at, &a.Retained)
	a.ID = envelope.ID(id)
	if at != 0 {
		a.Time = time.UnixMicro(at)
	}
	return a, err
}
