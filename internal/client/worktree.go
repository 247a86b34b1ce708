package client

import (
	"context"
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

// ApplyOptions say where the work of a task goes.
type ApplyOptions struct {
	Branch bool `json:"branch,omitzero"` // to a branch, and not to the working tree
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
