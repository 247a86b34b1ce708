package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/cli/view"
)

func diffCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "diff ID",
		Short: "Print what a task changed in its worktree",
		Long: `Print the difference between the commit that the latest run of a task began from and
the files at its end. It is for agents with exec.worktree and tasks that ask for a
worktree. A pipe gets every byte, so that git apply can read it.`,
		Example: `  mailboxd diff fix-login
  mailboxd diff fix-login | git apply --check`,
		Args: cobra.ExactArgs(1),
		RunE: withReader(g, func(cmd *cobra.Command, args []string, r *reader.Reader) error {
			id, err := r.Find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			patch, err := r.Patch(cmd.Context(), id)
			if err != nil {
				return err
			}
			if len(patch) == 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "task %s changed no file\n", id)
			}
			if !term.IsTerminal(cmd.OutOrStdout()) {
				_, err = cmd.OutOrStdout().Write(patch)
				return err
			}
			return view.PrintPatch(term.ScreenOf(cmd.OutOrStdout()), patch)
		}),
	}
}
