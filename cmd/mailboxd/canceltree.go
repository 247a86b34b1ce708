package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/cli/view"
)

// A treeCancel cancels a task, and the tasks below it if that is wanted.
type treeCancel struct {
	cmd      *cobra.Command
	with, no bool // the flags
	abandon  bool
}

// add adds the flags to the command.
func (tc *treeCancel) add(cmd *cobra.Command) *cobra.Command {
	tc.cmd = cmd
	cmd.Flags().BoolVar(&tc.with, "tree", false, "cancel the open tasks below it too")
	cmd.Flags().BoolVar(&tc.no, "no-tree", false, "leave the open tasks below it, and do not ask")
	cmd.Flags().BoolVar(&tc.abandon, "abandon", false, "end a task whose runner can't be reached, without waiting for the runner")
	cmd.MarkFlagsMutuallyExclusive("tree", "no-tree")
	cmd.MarkFlagsMutuallyExclusive("tree", "abandon")
	return cmd
}

// cancel cancels a task. It asks about open tasks below it at a terminal, and lists those
// that stay open.
func (tc *treeCancel) cancel(daemon *client.Client, ctx context.Context, id envelope.ID, request client.ControlOptions) (client.Task, error) {
	notes, with, listed := tc.cmd.ErrOrStderr(), tc.with, false
	open, err := daemon.OpenBelow(ctx, id)
	if err == nil && len(open) > 0 && !tc.with && !tc.no && term.Interactive() {
		view.PrintBelow(notes, id, open)
		listed = true
		if with, err = term.Confirm(ctx, "Cancel them too?"); err != nil {
			return client.Task{}, fmt.Errorf("%w; use --tree or --no-tree", err)
		}
	}
	if with {
		tree, err := daemon.CancelTree(ctx, id, request)
		if err == nil {
			view.PrintCancelled(notes, tree)
		}
		return tree.Task, err
	}
	end := daemon.Cancel
	if tc.abandon {
		end = daemon.Abandon
	}
	task, err := end(ctx, id, request)
	if err != nil {
		return task, err
	}
	if open, err := daemon.OpenBelow(ctx, id); err == nil && len(open) > 0 {
		if !listed {
			view.PrintBelow(notes, id, open)
		}
		fmt.Fprintf(notes, "cancel them with: %s\n", view.Command("cancel", id, "--tree"))
	}
	return task, nil
}
