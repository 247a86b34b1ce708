package main

import (
	"time"

	"github.com/spf13/cobra"

	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/cli/view"
)

func showCommand(g *globals) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "show ID...",
		Short: "Show a task: its state, the reason, and what to do next",
		Long: `Show the state of a task, what it waits for and what to do next. Below are a
pending approval, the events in order, the runs, the files and the result.`,
		Example: "  mailboxd show nightly-report\n  mailboxd show nightly-report --json | jq .events",
		Args:    cobra.MinimumNArgs(1),
		RunE: withReader(g, func(cmd *cobra.Command, args []string, r *reader.Reader) error {
			return forEach(cmd, args, func(arg string) error {
				return showTask(cmd, r, arg, asJSON)
			})
		}),
	}
	g.addSocket(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object for each task")
	return cmd
}

func showTask(cmd *cobra.Command, r *reader.Reader, arg string, asJSON bool) error {
	id, err := r.Find(cmd.Context(), arg)
	if err != nil {
		return err
	}
	file, err := r.Details(cmd.Context(), id)
	if err != nil {
		return err
	}
	if asJSON {
		return term.PrintJSON(cmd.OutOrStdout(), file)
	}
	around, err := r.WaitContext(cmd.Context(), []client.Task{file.Task}, time.Now())
	if err != nil {
		return err
	}
	screen, details := term.ScreenOf(cmd.OutOrStdout()), &view.Details{TaskDetails: file}
	around.ShortIDs = screen.Columns > 0
	details.Session, details.Continue = reader.Session(file)
	return details.Print(screen, around, r.Files(file))
}
