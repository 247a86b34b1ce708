package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/cli/view"
)

func replayCommand(g *globals) *cobra.Command {
	asJSON, check := false, false
	cmd := &cobra.Command{
		Use:   "replay RUN",
		Short: "Print a run as messages of Clutch",
		Long: `Print what the ledger has of a run as messages of Clutch, in the order of its events,
whatever the dialects of its tasks are. RUN is a run_id, or the id of a task in the
run. With --check, make states of the tasks out of the messages, and compare them
with the ledger. The exit code is 1 if they differ.`,
		Example: `  mailboxd replay run_1
  mailboxd replay run_1 --json | jq -r .type
  mailboxd replay run_1 --check`,
		Args: cobra.ExactArgs(1),
		RunE: withReader(g, func(cmd *cobra.Command, args []string, r *reader.Reader) error {
			found, err := r.Replay(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if check {
				for _, difference := range found.Differences {
					fmt.Fprintln(cmd.OutOrStdout(), term.Escape(difference))
				}
				if n := len(found.Differences); n > 0 {
					return exit.With(exit.Failed, "messages and ledger differ in %d places", n)
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d messages say the same as the ledger\n", len(found.Messages))
				return err
			}
			return view.PrintReplay(cmd.OutOrStdout(), found, asJSON)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one envelope per line")
	cmd.Flags().BoolVar(&check, "check", false, "compare the messages with the tasks of the ledger")
	return cmd
}
