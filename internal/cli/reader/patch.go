package reader

import (
	"context"

	"mailboxd/envelope"
	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/stores/worktree"
)

// Patch returns the work of the latest run of a task that worked in a clone of a repository.
func (r *Reader) Patch(ctx context.Context, id envelope.ID) ([]byte, error) {
	file, err := r.Details(ctx, id)
	if err != nil {
		return nil, err
	}
	switch w := file.Worktree(); {
	case w == nil:
		return nil, exit.With(exit.Failed, "no run of %s worked in a worktree; see: %s", id, view.Command("show", id))
	case w.Problem != "":
		return nil, exit.With(exit.Failed, "the work of %s was not kept: %s; its files are in %s", id, w.Problem, w.Dir)
	case !w.Ended:
		return nil, exit.With(exit.Timeout, "the run of %s has not ended; its files are in %s", id, w.Dir)
	case w.Patch == "":
		return nil, nil
	default:
		return worktree.ReadPatch(w.Patch, w.Digest)
	}
}
