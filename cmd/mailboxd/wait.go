package main

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"

	"mailboxd/envelope"
	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/cli/view"
)

func waitCommand(g *globals) *cobra.Command {
	timeout, asJSON := time.Duration(0), false
	cmd := &cobra.Command{
		Use:   "wait ID...",
		Short: "Wait for the results of tasks",
		Long: `Print the result of each task when it is there, in the given order. On a terminal,
wait shows the state of the task and the last line of its agent meanwhile.

Exit code of the worst result: 0 done, 3 ended in error, 4 rejected or denied,
5 timed out.`,
		Example: "  mailboxd wait nightly-report --timeout 10m\n  mailboxd wait part-1 part-2 && mailboxd send -f summary.json",
		Args:    cobra.MinimumNArgs(1),
		RunE: withReader(g, func(cmd *cobra.Command, args []string, r *reader.Reader) error {
			var tasks []reader.Submission
			for _, arg := range args {
				id, err := taskID(cmd.Context(), r, arg)
				if err != nil {
					return err
				}
				tasks = append(tasks, reader.Submission{ID: id})
			}
			return waitFor(cmd, r.Location, tasks, timeout, asJSON)
		}),
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "how long to wait; 0: no limit")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the results, one JSON object per line")
	return cmd
}

// taskID returns the id that arg names or begins, or one that may still come.
func taskID(ctx context.Context, r *reader.Reader, arg string) (envelope.ID, error) {
	id, err := r.Find(ctx, arg)
	if exit.CodeOf(err) != exit.NoTask {
		return id, err
	}
	if id, err = envelope.ParseID(arg); err != nil {
		return "", exit.With(exit.Usage, "task id %q %w", arg, err)
	}
	return id, nil
}

// shownID is the id of a task as its output shows it: on a terminal, its short id.
func shownID(cmd *cobra.Command, at reader.Location, id envelope.ID) envelope.ID {
	if !term.IsTerminal(cmd.OutOrStdout()) || !view.IsRandom(id) {
		return id
	}
	short := id
	_ = at.Read(cmd.Context(), func(ctx context.Context, r *reader.Reader) error { // without a ledger there is none
		file, err := r.Details(ctx, id)
		short = cmp.Or(file.Task.ShortID, id)
		return err
	})
	return short
}

// waitFor prints the result of each task as it comes, and returns the worst exit code.
func waitFor(cmd *cobra.Command, at reader.Location, tasks []reader.Submission, timeout time.Duration, asJSON bool) error {
	ctx := cmd.Context()
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	var worst error
	for _, task := range tasks {
		raw, err := term.Spin(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), func(ctx context.Context) string { return reader.Progress(ctx, at, task.ID) },
			func() ([]byte, error) { return task.AwaitResult(ctx, at) })
		switch {
		case exit.CodeOf(err) != 0: // others may have results
			worst = exit.Worse(worst, err)
			continue
		case err != nil:
			return err
		}
		if err := view.PrintResultOf(cmd.OutOrStdout(), shownID(cmd, at, task.ID), raw, asJSON); err != nil {
			return err
		}
		worst = exit.Worse(worst, verdictOf(raw))
	}
	return worst
}
