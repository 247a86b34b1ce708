package dispatch

import (
	"context"
	"fmt"
	"slices"
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/worktree"
)

// What a person can do with the work of a task.
const (
	VerbApply   = "apply"
	VerbDiscard = "discard"
)

// Work is what a task did in a worktree, as a person decides about it.
type Work struct {
	Task  task.Task
	Run   task.Run // that did it
	clone worktree.Clone
}

// Digest names the patch of the work: its SHA-256; "" for no patch.
func (w Work) Digest() string {
	if w.clone.Work == nil {
		return ""
	}
	return w.clone.Work.Digest
}

// isSeen returns an *ApplyError if the work has another digest than what the person saw. "" is
// whatever there is.
func (w Work) isSeen(digest string) error {
	if digest == "" || digest == w.Digest() {
		return nil
	}
	return notApplied("the patch is another one than was shown: it was sha256 %.64q, and is sha256 %q; look at it again", digest, w.Digest())
}

// A WorkDecider is a person who decides about the work of a task.
type WorkDecider struct {
	Who    string
	Digest string     // of the patch that the person saw; "" for whatever there is
	Proof  task.Proof // that the person decided; zero for none
}

// data adds the person and the proof to the data of an event.
func (d WorkDecider) data(data map[string]any) map[string]any {
	data["by"] = d.Who
	if d.Digest != "" {
		data[task.PatchDigest] = d.Digest
	}
	if d.Proof.Kind != "" {
		data["proof"] = d.Proof.Kind
		for name, text := range map[string]string{"terminal": d.Proof.Terminal, "key": d.Proof.Key, "signature": d.Proof.Signature} {
			if text != "" {
				data[name] = text
			}
		}
	}
	if !d.Proof.Expires.IsZero() {
		data["expires"] = d.Proof.Expires
	}
	return data
}

// Work returns the work of the latest run of a task that worked in a worktree. The task is done.
// Errors: *ApplyError if a person can't apply or discard it, by the verb; the error of an unknown id
// wraps ledger.ErrUnknown.
func (ct *controls) Work(ctx context.Context, verb string, id envelope.ID) (Work, error) {
	err := ct.whenReady(ctx)
	var row task.Task
	if err == nil {
		row, err = ct.Reader.Newest(ctx, id)
	}
	if err != nil {
		return Work{}, err
	}
	if row.State != task.Done {
		return Work{}, notApplied("the task is %s; its work can be applied when it is done", row.State)
	}
	if verb == VerbApply {
		asked, err := ct.Ledger.Approvals(ctx, row.Seq)
		if err != nil {
			return Work{}, err
		}
		if why := whyWithheld(row, asked); why != "" {
			return Work{}, notApplied("%s", why)
		}
	}
	w, err := ct.workOf(ctx, row)
	if err == nil && !w.clone.Discarded.IsZero() {
		err = notApplied("its work was discarded %s", w.clone.Discarded.UTC().Format(time.RFC3339))
	}
	return w, err
}

// workOf returns the work of the latest run of a task that had a clone.
func (ct *controls) workOf(ctx context.Context, row task.Task) (Work, error) {
	runs, err := ct.Ledger.Runs(ctx, row.Seq)
	if err != nil {
		return Work{}, err
	}
	for _, run := range slices.Backward(runs) {
		c, ok, err := ct.worktrees().Open(run.ID)
		if ok || err != nil {
			return Work{row, run, c}, err
		}
	}
	return Work{}, notApplied("no run of the task worked in a worktree")
}

// Discard keeps the work of a task from being applied, and gives its clone to the next collection.
// The patch stays as long as the directory of its run. Its errors are those of Apply.
func (ct *controls) Discard(ctx context.Context, id envelope.ID, by WorkDecider) error {
	ct.applying.Lock()
	defer ct.applying.Unlock()
	w, err := ct.Work(ctx, VerbDiscard, id)
	if err == nil {
		err = w.isSeen(by.Digest)
	}
	c := w.clone
	switch {
	case err != nil:
	case !c.Applied.IsZero() || c.Branched != "":
		err = notApplied("its work was applied already")
	case c.Work == nil || c.Work.File == "":
		err = notApplied("there is no work to discard")
	default:
		c.Discarded = time.Now()
		err = ct.worktrees().Update(c)
	}
	if err != nil {
		return fmt.Errorf("discard %s: %w", id, err)
	}
	data := by.data(map[string]any{"source": c.Source, "files": len(c.Work.Summary.Files), "run": c.Run})
	err = ct.Writer.Update(context.WithoutCancel(ctx), func(tx *store.Transaction) error {
		return tx.Log(store.Event(w.Task, task.KindWorktreeDiscarded, data))
	})
	if err != nil {
		return fmt.Errorf("record that %s was discarded: %w", id, err)
	}
	return nil
}
