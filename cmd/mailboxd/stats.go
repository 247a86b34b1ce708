package main

import (
	"time"

	"github.com/spf13/cobra"

	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/cli/view"
)

func statsCommand(g *globals) *cobra.Command {
	days, asJSON := 7, false
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Show cost, success and queues, by agent and day",
		Long: `Show how many tasks ended, how many of them with an answer, what their runs cost
and how long they took, and which tasks wait for a slot. Days are those of UTC. A
plus sign after a cost says that the cost of some runs is unknown. Cancelled tasks
do not count for the success.`,
		Example: `  mailboxd stats
  mailboxd stats --days 30 --json | jq '[.days[].usd_cents] | add'`,
		Args: cobra.NoArgs,
		RunE: withReader(g, func(cmd *cobra.Command, _ []string, r *reader.Reader) error {
			if days < 1 {
				return exit.With(exit.Usage, "--days must be at least 1")
			}
			now := time.Now()
			s, err := r.Stats(cmd.Context(), now.UTC().Truncate(24*time.Hour).AddDate(0, 0, 1-days))
			if err != nil {
				return err
			}
			if asJSON {
				return term.PrintJSON(cmd.OutOrStdout(), s)
			}
			return view.PrintStats(cmd.OutOrStdout(), s, now)
		}),
	}
	cmd.Flags().IntVar(&days, "days", days, "how many days, with today")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}
