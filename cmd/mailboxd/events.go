package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"mailboxd/envelope"
	"mailboxd/internal/client"
	"mailboxd/internal/reader"
	"mailboxd/internal/term"
	"mailboxd/internal/view"
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
happen, until the daemon stops; the exit code is then 7.`,
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
	id, err := f.id(cmd.Context(), r)
	if err != nil {
		return err
	}
	q := reader.EventQuery{Task: id, After: f.after, Tail: f.tail}
	if f.since > 0 {
		q.Since = time.Now().Add(-f.since)
	} else if f.tail == 0 && f.after < 0 && id == "" && term.IsTerminal(cmd.OutOrStdout()) && !f.asJSON {
		q.Tail = latestEvents
	}
	return r.Events(cmd.Context(), q, func(e client.Event) error { return view.PrintEvent(cmd.OutOrStdout(), e, f.asJSON) })
}

// latestEvents is how many events are printed at a terminal.
const latestEvents = 100

// followThem prints events as they come.
func (f *eventFlags) followThem(cmd *cobra.Command, _ []string, r *reader.Reader, daemon *client.Client) error {
	id, err := f.id(cmd.Context(), r)
	if err != nil {
		return err
	}
	after := f.after
	if id != "" {
		after = max(after, 0) // one task has few events
	}
	err = daemon.Follow(cmd.Context(), id, after, func(e client.Event) error { return view.PrintEvent(cmd.OutOrStdout(), e, f.asJSON) })
	if errors.Is(err, context.Canceled) {
		return nil // by a signal
	}
	return err
}

// id is the id of --task, or "".
func (f *eventFlags) id(ctx context.Context, r *reader.Reader) (envelope.ID, error) {
	if f.task == "" {
		return "", nil
	}
	return r.Find(ctx, f.task)
}
