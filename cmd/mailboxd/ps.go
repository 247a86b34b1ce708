package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"mailboxd/internal/client"
	"mailboxd/internal/ledger"
)

// recent is how many finished tasks ps shows when nobody asks for more.
const recent = 20

func psCommand(g *globals) *cobra.Command {
	var filter client.Filter
	all, held, asJSON := false, false, false
	cmd := &cobra.Command{
		Use:   "ps",
		Short: "List tasks: what is not done, and the latest that are",
		Example: `  mailboxd ps
  mailboxd ps --held
  mailboxd ps --state held,running --agent reviewer
  mailboxd ps --all --json | jq -r 'select(.status == "error").task_id'`,
		Args: cobra.NoArgs,
		RunE: atDesk(g, func(cmd *cobra.Command, _ []string, desk *desk) error {
			for _, s := range filter.States {
				if !slices.Contains(ledger.States(), ledger.State(s)) {
					return exitWith(exitUsage, "--state %s: not one of %v", s, ledger.States())
				}
			}
			if held {
				filter.States = append(filter.States, string(ledger.Held), string(ledger.Review))
			}
			rows, err := desk.list(cmd, filter, all)
			if err != nil {
				return err
			}
			return printTasks(cmd.OutOrStdout(), rows, asJSON, time.Now())
		}),
	}
	flags := cmd.Flags()
	flags.BoolVar(&held, "held", false, "only tasks that wait for somebody: held, or in review")
	flags.StringSliceVar(&filter.States, "state", nil, "only tasks in these states")
	flags.StringVar(&filter.Agent, "agent", "", "only tasks for this agent")
	flags.StringVar(&filter.Requester, "requester", "", "only tasks of this requester")
	flags.BoolVar(&all, "all", false, "every finished task too")
	flags.BoolVar(&asJSON, "json", false, "one JSON object per line")
	return cmd
}

// list returns the tasks that are not done, then the finished ones, newest last.
func (d *desk) list(cmd *cobra.Command, filter client.Filter, all bool) ([]client.Task, error) {
	if d.books == nil {
		return nil, nil
	}
	if len(filter.States) > 0 || all {
		return d.books.Tasks(cmd.Context(), filter)
	}
	finished := filter
	finished.States, finished.Limit, finished.NewestFirst = []string{string(ledger.Done)}, recent, true
	done, err := d.books.Tasks(cmd.Context(), finished)
	if err != nil {
		return nil, err
	}
	slices.Reverse(done)
	for _, s := range ledger.States() {
		if s != ledger.Done {
			filter.States = append(filter.States, string(s))
		}
	}
	open, err := d.books.Tasks(cmd.Context(), filter)
	return append(done, open...), err
}

func printTasks(w io.Writer, rows []client.Task, asJSON bool, now time.Time) error {
	if asJSON {
		for _, row := range rows {
			if err := printJSON(w, row); err != nil {
				return err
			}
		}
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "TASK\tSTATE\tAGENT\tAGE\tREQUESTER")
	for _, row := range rows {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", plain(string(row.ID)), whereabouts(row), plain(row.Agent), age(now.Sub(row.Received)), plain(row.Requester))
	}
	return table.Flush()
}

// whereabouts says in two or three words where a task is.
func whereabouts(task client.Task) string {
	switch ledger.State(task.State) {
	case ledger.Held:
		return "held (" + strings.Join(task.Held, ", ") + ")"
	case ledger.Done:
		if task.Kind != "" {
			return plain(string(task.Status) + " (" + string(task.Kind) + ")")
		}
		return plain(string(task.Status))
	}
	return task.State
}

// age shortens a duration to its greatest unit.
func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// printJSON prints a value as one line.
func printJSON(w io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", text)
	return err
}
