package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"mailboxd/envelope"
	"mailboxd/internal/client"
	"mailboxd/internal/exit"
	"mailboxd/internal/ledger"
	"mailboxd/internal/term"
)

func showCommand(g *globals) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show all that is known of a task, and why it is where it is",
		Long: `Show says where a task is, what it waits for and what to do next; what a person is
asked about it; what happened to it, in order; its runs, its files and its result.`,
		Example: "  mailboxd show nightly-report\n  mailboxd show nightly-report --json | jq .events",
		Args:    cobra.ExactArgs(1),
		RunE: atDesk(g, func(cmd *cobra.Command, args []string, desk *desk) error {
			id, err := desk.find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			file, err := desk.file(cmd.Context(), id)
			if err != nil {
				return err
			}
			if asJSON {
				return term.PrintJSON(cmd.OutOrStdout(), file)
			}
			return desk.tell(cmd.Context(), &caseFile{file}, term.ScreenOf(cmd.OutOrStdout()), time.Now())
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// file returns all that is known of a task.
func (d *desk) file(ctx context.Context, id envelope.ID) (client.CaseFile, error) {
	file, err := client.CaseFile{}, error(ledger.ErrUnknown)
	if d.books != nil {
		file, err = d.books.CaseFile(ctx, id)
	}
	if noTask(err) {
		err = exit.With(exit.NoTask, "nothing is known of %s but its result; see: %s", id, advise("result", id))
	}
	return file, err
}
