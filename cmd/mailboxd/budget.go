package main

import (
	"time"

	"github.com/spf13/cobra"

	"mailboxd/internal/exit"
	"mailboxd/internal/reader"
	"mailboxd/internal/task"
	"mailboxd/internal/view"
)

func budgetCommand(g *globals) *cobra.Command {
	day, asJSON := "", false
	cmd := &cobra.Command{
		Use:   "budget",
		Short: "Show where the budgets of a day stand",
		Long: `Budget shows what requesters and agents have spent on a day, in UTC: the limit
they have, what is spent, what is reserved for runs that are not over, and what
is left. A run of which nobody knows what it spent counts as it was reserved.`,
		Example: `  mailboxd budget
  mailboxd budget --day 2026-03-09 --json | jq -r 'select(.usd_cents.left == 0).account'`,
		Args: cobra.NoArgs,
		RunE: withReader(g, func(cmd *cobra.Command, _ []string, r *reader.Reader) error {
			if _, err := time.Parse(time.DateOnly, day); err != nil {
				return exit.With(exit.Usage, "--day %s: not a day such as 2026-03-09", day)
			}
			if r.Records == nil {
				return nil
			}
			all, err := r.Records.Balances(cmd.Context(), day)
			if err != nil {
				return err
			}
			return view.PrintBalances(cmd.OutOrStdout(), all, asJSON)
		}),
	}
	cmd.Flags().StringVar(&day, "day", task.Day(time.Now()), "which day, in UTC")
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object per line")
	return cmd
}
