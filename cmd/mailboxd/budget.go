package main

import (
	"cmp"
	"time"

	"github.com/spf13/cobra"

	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/operating/config"
)

func budgetCommand(g *globals) *cobra.Command {
	day, asJSON := "", false
	cmd := &cobra.Command{
		Use:   "budget",
		Short: "Show what is spent and left of the daily budgets",
		Long: `Show the budgets of a day (UTC), for each requester and agent: the limit, the
amount spent, the amount reserved for unfinished runs, and the amount left. A run
of unknown cost counts with its reservation.`,
		Example: `  mailboxd budget
  mailboxd budget --day 2026-03-09 --json |
      jq -r 'select(.usd_cents.left == 0).account'`,
		Args: cobra.NoArgs,
		RunE: withReader(g, func(cmd *cobra.Command, _ []string, r *reader.Reader) error {
			if _, err := time.Parse(time.DateOnly, day); err != nil {
				return exit.With(exit.Usage, "--day %s: not a day such as 2026-03-09", day)
			}
			all, err := r.Balances(cmd.Context(), day)
			if err != nil {
				return err
			}
			return view.PrintBalances(cmd.OutOrStdout(), all, asJSON, noBalances(g, day))
		}),
	}
	cmd.Flags().StringVar(&day, "day", task.Day(time.Now()), "the day, in UTC")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line")
	return cmd
}

// noBalances says why there is nothing to show of a day.
func noBalances(g *globals, day string) string {
	words := "nothing was spent or reserved on " + day
	if cfg, err := g.load(); err == nil && len(cfg.Policy.Budgets) == 0 {
		words += "; no daily budget is configured: set policy.budgets in " + cmp.Or(g.config, config.DefaultPath())
	}
	return words
}
