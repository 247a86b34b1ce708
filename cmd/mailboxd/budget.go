package main

import (
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"mailboxd/internal/client"
	"mailboxd/internal/exit"
	"mailboxd/internal/task"
	"mailboxd/internal/term"
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
		RunE: atDesk(g, func(cmd *cobra.Command, _ []string, desk *desk) error {
			if _, err := time.Parse(time.DateOnly, day); err != nil {
				return exit.With(exit.Usage, "--day %s: not a day such as 2026-03-09", day)
			}
			if desk.books == nil {
				return nil
			}
			all, err := desk.books.Balances(cmd.Context(), day)
			if err != nil {
				return err
			}
			return printBalances(cmd.OutOrStdout(), all, asJSON)
		}),
	}
	cmd.Flags().StringVar(&day, "day", task.Day(time.Now()), "which day, in UTC")
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object per line")
	return cmd
}

func printBalances(w io.Writer, all []client.Balance, asJSON bool) error {
	if asJSON {
		for _, b := range all {
			if err := term.PrintJSON(w, b); err != nil {
				return err
			}
		}
		return nil
	}
	list := &term.Table{Head: []string{"ACCOUNT", "OF", "LIMIT", "SPENT", "RESERVED", "LEFT", "UNKNOWN RUNS"}, Weights: []int{1, 0, 0, 0, 0, 0, 0}}
	for _, b := range all {
		for _, u := range []struct {
			name string
			client.Amount
		}{{"tokens", b.Tokens}, {"US cents", b.USDCents}} {
			if u.Limit == nil && u.Spent+u.Reserved == 0 {
				continue
			}
			list.Add(term.Cell{Text: term.OneLine(b.Owner)}, term.Cell{Text: u.name}, number(u.Limit), number(&u.Spent), number(&u.Reserved), number(u.Left), term.Cell{Text: strconv.Itoa(b.Unknown)})
		}
	}
	return list.Print(term.ScreenOf(w))
}

// number shows what there may be none of.
func number(n *int64) term.Cell {
	if n == nil {
		return term.Cell{Text: "-"}
	}
	return term.Cell{Text: strconv.FormatInt(*n, 10)}
}
