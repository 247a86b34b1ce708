package client

import (
	"context"
	"net/url"
	"slices"
	"time"

	"mailboxd/envelope"
)

// A Worktree is the clone of a repository that a run works in, and the work there.
type Worktree struct {
	Dir         string        `json:"dir"`                    // the clone
	Source      string        `json:"source"`                 // the working tree of the repository
	Commit      string        `json:"commit"`                 // the start of the work
	Branch      string        `json:"branch"`                 // for apply --branch
	Uncommitted []string      `json:"uncommitted,omitempty"`  // files of the source that the clone does not have
	Omitted     int           `json:"omitted,omitzero"`       // further ones
	Submodules  []string      `json:"submodules,omitempty"`   // which are empty in the clone
	NotCopied   []string      `json:"not_copied,omitempty"`   // what of exec.worktree.copy the clone does not have, with the reasons
	Ended       bool          `json:"ended"`                  // the fields below are known
	Patch       string        `json:"patch,omitempty"`        // the file; absent without a difference
	Digest      string        `json:"patch_sha256,omitempty"` // of that file
	Files       []ChangedFile `json:"files,omitempty"`        // at most 100
	Changed     int           `json:"changed_files"`
	Added       int           `json:"added_lines"`
	Deleted     int           `json:"deleted_lines"`
	Skipped     []string      `json:"skipped,omitempty"` // repositories among the files, and names that git takes for .git, which no patch has
	Problem     string        `json:"problem,omitempty"` // why there is no patch, although there may be a difference
	Applied     time.Time     `json:"applied_at,omitzero"`
	Fetched     string        `json:"branch_commit,omitempty"` // of the branch, after apply --branch
	Discarded   time.Time     `json:"discarded_at,omitzero"`   // when a person discarded the work
	Removed     time.Time     `json:"removed_at,omitzero"`     // when the clone was removed
}

// A ChangedFile is a file that a run changed in its clone.
type ChangedFile struct {
	Path    string `json:"path"`
	From    string `json:"from,omitempty"` // before a rename
	Added   int    `json:"added"`
	Deleted int    `json:"deleted"`
	Binary  bool   `json:"binary,omitzero"`
}

// Worktree returns the clone of the latest run that worked in one; nil for none.
func (f *TaskDetails) Worktree() *Worktree {
	for _, r := range slices.Backward(f.Runs) {
		if r.Worktree != nil {
			return r.Worktree
		}
	}
	return nil
}

// PatchShown returns the digest of the patch that is shown with an answer; "" for none.
func (f *TaskDetails) PatchShown() string {
	if w := f.Worktree(); w != nil {
		return w.Digest
	}
	return ""
}

// ApplyOptions say where the work of a task goes, what of it the person saw, and how the person
// proves the decision. A command of a person at a terminal needs no proof; the page sends one.
type ApplyOptions struct {
	Branch bool   `json:"branch,omitzero"`  // to a branch, and not to the working tree
	Digest string `json:"digest,omitempty"` // SHA-256 of the patch that the person saw; absent: whatever there is

	As       string     `json:"as,omitempty"`       // which of the caller's approver names signs
	Proof    *Signature `json:"proof,omitempty"`    // of the statement; absent: not signed
	Terminal bool       `json:"terminal,omitempty"` // the daemon asks at the caller's terminal
	Number   string     `json:"number,omitempty"`   // the two digits to type there, shown elsewhere; absent: the terminal shows a number
}

// An Application is where the work of a task went.
type Application struct {
	Source  string   `json:"source"`
	Branch  string   `json:"branch,omitempty"` // "" for the working tree
	Commit  string   `json:"commit,omitempty"` // of the branch
	Changed int      `json:"changed_files"`
	Already bool     `json:"already,omitzero"`  // it was there before
	Skipped []string `json:"skipped,omitempty"` // repositories among the files, and names that git takes for .git, which were left out
}

// Apply puts the work of a task into the repository that it began from.
func (c *Client) Apply(ctx context.Context, id envelope.ID, options ApplyOptions) (Application, error) {
	var answer Application
	err := c.post(ctx, taskPath(id, "/apply"), options, &answer)
	return answer, err
}

// WorkStatement returns what the caller signs to decide about the work of a task, by the verb apply
// or discard, and the proof that the page needs.
func (c *Client) WorkStatement(ctx context.Context, id envelope.ID, verb string) (s Statement, err error) {
	return s, c.get(ctx, taskPath(id, "/work"), url.Values{"verb": {verb}}, &s)
}

// Discard keeps the work of a task from being applied, and returns the task. Branch is not used.
func (c *Client) Discard(ctx context.Context, id envelope.ID, options ApplyOptions) (Task, error) {
	return c.change(ctx, id, "discard", options)
}
