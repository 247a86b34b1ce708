package dispatch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/worktree"
)

// An Application is where the work of a task went.
type Application struct {
	Source  string
	Branch  string   // "" for the working tree
	Commit  string   // of the branch
	Changed int      // files
	Already bool     // it was there before
	Skipped []string // what the run made and the patch leaves out: repositories, and names that git refuses
}

// An ApplyError says why the work of a task is not applied.
type ApplyError struct{ Err error }

func (e *ApplyError) Error() string { return e.Err.Error() }

func (e *ApplyError) Unwrap() error { return e.Err }

func notApplied(format string, args ...any) error { return &ApplyError{fmt.Errorf(format, args...)} }

// Apply puts the work of the latest run of a task into the repository that it began from: into
// its working tree, or as a commit into a branch of its own. The patch is the one that was kept
// when the run ended, whatever happened to the clone since. The task is done: an answer that
// waits for an approval cannot be applied, and neither can a denied one, nor work that a person
// discarded. Apply again changes nothing. Errors: *ApplyError if the work cannot be applied, or is
// not what the person saw; the error of an unknown id wraps ledger.ErrUnknown.
func (ct *controls) Apply(ctx context.Context, id envelope.ID, branch bool, by WorkDecider) (Application, error) {
	ct.applying.Lock()
	defer ct.applying.Unlock()
	w, err := ct.Work(ctx, VerbApply, id)
	if err == nil {
		err = w.isSeen(by.Digest)
	}
	if err != nil {
		return Application{}, fmt.Errorf("apply %s: %w", id, err)
	}
	row, c := w.Task, w.clone
	done, err := ct.apply(ctx, row, w.Run, &c, branch)
	if err != nil {
		return Application{}, fmt.Errorf("apply %s: %w", id, err)
	}
	if done.Already {
		return done, nil
	}
	data := by.data(map[string]any{"source": done.Source, "files": done.Changed, "run": c.Run})
	if done.Branch != "" {
		data["branch"], data["commit"] = done.Branch, done.Commit
	}
	err = ct.Writer.Update(context.WithoutCancel(ctx), func(tx *store.Transaction) error {
		return tx.Log(store.Event(row, task.KindWorktreeApplied, data))
	})
	if err != nil {
		return done, fmt.Errorf("record application of %s: %w", id, err)
	}
	return done, nil
}

// worktrees are the records of clones. Only runs make clones.
func (ct *controls) worktrees() worktree.Store {
	return worktree.Store{Records: worktree.RecordsIn(ct.State.Path())}
}

// whyWithheld says why the answer of a done task is not shown, and its work with it; "" if it
// is shown.
func whyWithheld(row task.Task, asked []task.Consent) string {
	answer := task.Approved
	for _, a := range asked {
		if a.DeniesTask() {
			return "an approver denied the task"
		}
		if a.Stage == envelope.ApprovalPost {
			answer = a.Decision
		}
	}
	switch {
	case answer != task.Approved || row.Kind == envelope.ApprovalExpired:
		return "its answer was not approved"
	case row.Kind == envelope.OversightRejected || row.Kind == envelope.OversightExpired:
		return "its overseer did not approve its answer"
	}
	return ""
}

// apply applies the kept patch of a clone and records when.
func (ct *controls) apply(ctx context.Context, row task.Task, run task.Run, c *worktree.Clone, branch bool) (Application, error) {
	s := ct.worktrees()
	patch, err := s.Patch(*c)
	if err != nil {
		return Application{}, &ApplyError{err}
	}
	done := Application{Source: c.Source, Changed: len(c.Work.Summary.Files), Skipped: c.Work.Summary.Skipped}
	if !branch && !c.Applied.IsZero() {
		done.Already = true
		return done, nil
	}
	earlier, err := s.EarlierPatch(*c)
	if err != nil {
		return Application{}, &ApplyError{err}
	}
	if branch {
		done.Branch = c.Branch
		done.Commit, err = s.FetchBranch(ctx, c.Source, patch, worktree.Commit{
			Parent: c.Commit, Branch: c.Branch, Message: ct.commitMessage(ctx, row), Author: row.Agent, Time: run.Finished, Earlier: earlier,
		})
		done.Already = err == nil && c.Branched == done.Commit
		c.Branched = done.Commit
	} else {
		err = s.Apply(ctx, c.Source, earlier, patch)
		done.Already = errors.Is(err, worktree.ErrApplied)
		c.Applied = time.Now()
	}
	if err != nil && !done.Already {
		return Application{}, &ApplyError{err}
	}
	return done, s.Update(*c)
}

// maxSubject limits the first line of a commit.
const maxSubject = 72

// commitMessage describes the work of a task.
func (ct *controls) commitMessage(ctx context.Context, row task.Task) string {
	subject := "Work of " + row.Agent
	if _, t, _, err := ct.Reader.Load(ctx, row.Seq); err == nil { // otherwise the request is too old to be kept
		if first, _, _ := strings.Cut(strings.TrimSpace(t.Description), "\n"); first != "" {
			subject = first
		}
	}
	if runes := []rune(subject); len(runes) > maxSubject {
		subject = string(runes[:maxSubject-3]) + "..."
	}
	return fmt.Sprintf("%s\n\nTask %s of mailboxd, agent %s.\n", subject, row.ID, row.Agent)
}
