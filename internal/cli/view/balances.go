package view

import (
	"fmt"
	"io"
	"strconv"

	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/term"
)

// PrintBalances prints accounts as a table, or each as a line of JSON. For an empty table it
// prints a text.
func PrintBalances(w io.Writer, all []client.Balance, asJSON bool, empty string) error {
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
			list.Add(term.Cell{Text: term.OneLine(b.Owner)}, term.Cell{Text: u.name}, numberCell(u.Limit), numberCell(&u.Spent), numberCell(&u.Reserved), numberCell(u.Left), term.Cell{Text: strconv.Itoa(b.Unknown)})
		}
	}
	if list.IsEmpty() {
		_, err := fmt.Fprintln(w, empty)
		return err
	}
	return list.Print(term.ScreenOf(w))
}

// numberCell formats a number that may be missing.
func numberCell(n *int64) term.Cell {
	if n == nil {
		return term.Cell{Text: "-"}
	}
	return term.Cell{Text: strconv.FormatInt(*n, 10)}
}
