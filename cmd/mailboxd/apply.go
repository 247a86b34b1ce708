package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/cli/view"
)

func applyCommand(g *globals) *cobra.Command {
	options, which, asJSON := client.ApplyOptions{}, &chosen{}, false
	cmd := &cobra.Command{
		Use:   "apply ID",
		Short: "Put the work of a task into the repository it began from",
		Long: `Apply the difference that mailboxd diff prints to the working tree of the repository
that the worktree of the task was made from. All of it applies or nothing changes. A
file with uncommitted changes is never changed; the index is never changed. With
--branch, the work becomes one commit in a branch of its own, on the commit that it
began from, and the working tree stays as it is. A process of a run may not apply.`,
		Example: `  mailboxd diff fix-login && mailboxd apply fix-login
  mailboxd apply fix-login --branch`,
		Args: cobra.ExactArgs(1),
		RunE: withDaemon(g, func(cmd *cobra.Command, args []string, r *reader.Reader, daemon *client.Client) error {
			id, err := which.find(cmd.Context(), r, args[0])
			if err != nil {
				return err
			}
			done, err := daemon.Apply(cmd.Context(), id, options)
			if err != nil {
				return err
			}
			if asJSON {
				return term.PrintJSON(cmd.OutOrStdout(), done)
			}
			return view.PrintApplication(cmd.OutOrStdout(), id, done)
		}),
	}
	cmd.Flags().BoolVar(&options.Branch, "branch", false, "to a branch of its own instead of the working tree")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	which.add(cmd)
	return cmd
}

func discardCommand(g *globals) *cobra.Command {
	which, asJSON := &chosen{}, false
	cmd := &cobra.Command{
		Use:   "discard ID",
		Short: "Discard the work of a task",
		Long: `Keep the work of a task from being applied. Its clone goes with the next collection of
mailboxd gc, or within a day. Its difference stays as long as the directory of its run:
mailboxd diff prints it. A process of a run may not discard.`,
		Example: "  mailboxd discard fix-login",
		Args:    cobra.ExactArgs(1),
		RunE: withDaemon(g, func(cmd *cobra.Command, args []string, r *reader.Reader, daemon *client.Client) error {
			id, err := which.find(cmd.Context(), r, args[0])
			if err != nil {
				return err
			}
			row, err := daemon.Discard(cmd.Context(), id, client.ApplyOptions{})
			if err != nil {
				return err
			}
			if asJSON {
				return term.PrintJSON(cmd.OutOrStdout(), row)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s  discarded; to see it: %s\n", term.OneLine(string(id)), view.Command("diff", id))
			return err
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the task as one JSON object")
	which.add(cmd)
	return cmd
}
