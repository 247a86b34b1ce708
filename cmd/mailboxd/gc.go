package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/operating/config"
	"mailboxd/internal/operating/daemon"
	"mailboxd/internal/stores/retention"
)

func gcCommand(g *globals) *cobra.Command {
	dry, asJSON := false, false
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Remove data that is older than its retention",
		Long: `Remove run directories, worktrees, replaced results, dead letters, requests, events
and messages that are older than the retention of the configuration, worktrees whose
work was applied, and artifacts that no task needs any more. Task ids, hashes and result files are kept. A daemon that is
running does it, with its own configuration; it does the same once a day.`,
		Example: `  mailboxd gc --dry-run
  mailboxd gc`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := g.load()
			if err != nil {
				return err
			}
			log := term.NewLogger(cmd.ErrOrStderr(), cfg.Log.Level, cfg.Log.Format)
			gone, err := term.Spin(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), func(context.Context) string { return "looking for what is too old" },
				func() (retention.Collected, error) { return collect(cmd.Context(), cfg, log, dry) })
			if err != nil {
				return err
			}
			if asJSON {
				err = term.PrintJSON(cmd.OutOrStdout(), gone)
			} else {
				err = printCollected(cmd.OutOrStdout(), gone, dry)
			}
			if err == nil && gone.Left > 0 {
				err = fmt.Errorf("%d could not be removed, which mailboxd doctor lists; one is %s", gone.Left, gone.Cause)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "print what would be removed, and remove nothing")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// collect has the daemon collect, or does so itself without one.
func collect(ctx context.Context, cfg config.Config, log zerolog.Logger, dry bool) (retention.Collected, error) {
	r, served, err := locationOf(cfg).Connect(ctx)
	if errors.Is(err, client.ErrDown) || errors.Is(err, reader.ErrNoMailbox) {
		return daemon.Collect(ctx, cfg, log, dry)
	}
	if err != nil {
		return retention.Collected{}, withExitCode(err)
	}
	defer r.Close()
	gone, err := served.Collect(ctx, client.GCOptions{DryRun: dry})
	return retention.Collected(gone), withExitCode(err)
}

func printCollected(w io.Writer, gone retention.Collected, dry bool) error {
	verb := "removed"
	if dry {
		verb = "would remove"
	}
	_, err := fmt.Fprintf(w, "%s %d run directories, %d worktrees, %d replaced results, %d days of dead letters and %d artifacts (%d bytes); "+
		"%d requests, %d events and %d messages of the ledger\n",
		verb, gone.Runs, gone.Clones, gone.History, gone.Rejected, gone.Files, gone.Bytes, gone.Bodies, gone.Events, gone.Messages)
	return err
}
