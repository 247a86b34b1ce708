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

	"mailboxd/envelope"
	"mailboxd/internal/ledger"
)

// recent is how many finished tasks ps shows when nobody asks for more.
const recent = 20

func psCommand(g *globals) *cobra.Command {
	var filter ledger.Filter
	var states []string
	all, asJSON := false, false
	cmd := &cobra.Command{
		Use:   "ps",
		Short: "List tasks: what is not done, and the latest that are",
		Example: `  mailboxd ps
  mailboxd ps --state held,running --agent reviewer
  mailboxd ps --all --json | jq -r 'select(.status == "error").task_id'`,
		Args: cobra.NoArgs,
		RunE: atDesk(g, func(cmd *cobra.Command, _ []string, desk *desk) error {
			for _, s := range states {
				if !slices.Contains(ledger.States(), ledger.State(s)) {
					return exitWith(exitUsage, "--state %s: not one of %v", s, ledger.States())
				}
				filter.States = append(filter.States, ledger.State(s))
			}
			rows, err := desk.list(cmd, filter, all)
			if err != nil {
				return err
			}
			return printTasks(cmd.OutOrStdout(), rows, asJSON, time.Now())
		}),
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&states, "state", nil, "only tasks in these states")
	flags.StringVar(&filter.Agent, "agent", "", "only tasks for this agent")
	flags.StringVar(&filter.Requester, "requester", "", "only tasks of this requester")
	flags.BoolVar(&all, "all", false, "every finished task too")
	flags.BoolVar(&asJSON, "json", false, "one JSON object per line")
	return cmd
}

// list returns the tasks that are not done, then the finished ones, newest last.
func (d *desk) list(cmd *cobra.Command, filter ledger.Filter, all bool) ([]ledger.Task, error) {
	if d.memory == nil {
		return nil, nil
	}
	if len(filter.States) > 0 || all {
		return d.memory.Tasks(cmd.Context(), filter)
	}
	finished := filter
	finished.States, finished.Limit, finished.NewestFirst = []ledger.State{ledger.Done}, recent, true
	done, err := d.memory.Tasks(cmd.Context(), finished)
	if err != nil {
		return nil, err
	}
	slices.Reverse(done)
	filter.States = slices.DeleteFunc(ledger.States(), func(s ledger.State) bool { return s == ledger.Done })
	open, err := d.memory.Tasks(cmd.Context(), filter)
	return append(done, open...), err
}

func printTasks(w io.Writer, rows []ledger.Task, asJSON bool, now time.Time) error {
	if asJSON {
		for _, row := range rows {
			if err := printJSON(w, viewOf(row)); err != nil {
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
func whereabouts(row ledger.Task) string {
	switch {
	case row.State == ledger.Held:
		words := make([]string, len(row.Reasons))
		for i, r := range row.Reasons {
			words[i] = string(r)
		}
		return "held (" + strings.Join(words, ", ") + ")"
	case row.State == ledger.Done && row.Kind != "":
		return plain(string(row.Status) + " (" + string(row.Kind) + ")")
	case row.State == ledger.Done:
		return plain(string(row.Status))
	}
	return string(row.State)
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

// taskView is a task as --json shows it.
type taskView struct {
	ID        envelope.ID     `json:"task_id"`
	Revision  int             `json:"revision"`
	State     ledger.State    `json:"state"`
	Held      []ledger.Reason `json:"held,omitempty"`
	Until     time.Time       `json:"until,omitzero"`
	Attempt   int             `json:"attempt"`
	Agent     string          `json:"agent"`
	Requester string          `json:"requester"`
	Type      string          `json:"task_type"`
	Deadline  time.Time       `json:"deadline,omitzero"`
	Received  time.Time       `json:"received_at"`
	Finished  time.Time       `json:"finished_at,omitzero"`
	Status    envelope.Status `json:"status,omitempty"`
	Kind      envelope.Kind   `json:"error_kind,omitempty"`
	File      string          `json:"file"`
	Offset    int64           `json:"offset"`
}

func viewOf(t ledger.Task) taskView {
	return taskView{
		ID: t.ID, Revision: t.Revision, State: t.State, Held: t.Reasons, Until: t.Until, Attempt: t.Attempt,
		Agent: t.Agent, Requester: t.Requester, Type: t.Type, Deadline: t.Deadline,
		Received: t.Received, Finished: t.Finished, Status: t.Status, Kind: t.Kind,
		File: t.File, Offset: t.Offset,
	}
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
