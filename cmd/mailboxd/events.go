package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/cli/view"
)

// eventFlags say which events to print.
type eventFlags struct {
	task           string
	after          int64
	since          time.Duration
	tail           int
	follow, asJSON bool
}

func eventsCommand(g *globals) *cobra.Command {
	f := &eventFlags{}
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Print events, and follow new ones",
		Long: `Print the events of the ledger, oldest first; at a terminal in words, and the 100
latest unless a flag says which. With -f, print new events as they
happen, after those of --since or --tail, until the daemon stops; the exit
code is then 7.`,
		Example: `  mailboxd events --task nightly-report
  mailboxd events --since 1h --tail 50
  mailboxd events -f
  mailboxd events -f --after 1200 --json | jq -r .kind`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.follow {
				return withDaemon(g, f.followThem)(cmd, args)
			}
			return withReader(g, f.list)(cmd, args)
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&f.follow, "follow", "f", false, "follow new events")
	flags.StringVar(&f.task, "task", "", "only events of this task")
	flags.Int64Var(&f.after, "after", -1, "only events after this number")
	flags.DurationVar(&f.since, "since", 0, "only events of this time, such as 1h")
	flags.IntVar(&f.tail, "tail", 0, "only so many of the latest")
	flags.BoolVar(&f.asJSON, "json", false, "print one JSON object per line")
	return cmd
}

// list prints the recorded events: at a terminal the latest, unless a flag says which.
func (f *eventFlags) list(cmd *cobra.Command, _ []string, r *reader.Reader) error {
	q, err := f.query(cmd.Context(), r)
	if q == (reader.EventQuery{After: -1}) && term.IsTerminal(cmd.OutOrStdout()) && !f.asJSON {
		q.Tail = latestEvents
	}
	if err != nil {
		return err
	}
	return r.Events(cmd.Context(), q, func(e client.Event) error { return view.PrintEvent(cmd.OutOrStdout(), e, f.asJSON) })
}

// latestEvents is how many events are printed at a terminal.
const latestEvents = 100

// followThem prints events as they come.
func (f *eventFlags) followThem(cmd *cobra.Command, _ []string, r *reader.Reader, daemon *client.Client) error {
	q, err := f.query(cmd.Context(), r)
	if err == nil {
		err = r.FollowEvents(cmd.Context(), daemon, q, func(e client.Event) error { return view.PrintEvent(cmd.OutOrStdout(), e, f.asJSON) })
	}
	if errors.Is(err, context.Canceled) {
		return nil // by a signal
	}
	return err
}

func (f *eventFlags) query(ctx context.Context, r *reader.Reader) (q reader.EventQuery, err error) {
	q = reader.EventQuery{After: f.after, Tail: f.tail}
	if f.tail < 0 || f.since < 0 {
		return q, exit.With(exit.Usage, "--tail and --since must not be negative")
	}
	if f.since > 0 {
		q.Since = time.Now().Add(-f.since)
	}
	if f.task != "" {
		q.Task, err = r.Find(ctx, f.task)
	}
	return q, err
}
