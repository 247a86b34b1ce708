package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"mailboxd/internal/config"
	"mailboxd/internal/retention"
	"mailboxd/internal/term"
	"mailboxd/mailbox"
)

func gcCommand(g *globals) *cobra.Command {
	dry, asJSON := false, false
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Remove data that is older than its retention",
		Long: `Remove run directories, worktrees, replaced results, dead letters, requests, events
and messages that are older than the retention of the configuration, and worktrees
whose work was applied. Task ids, hashes and result files are kept. The daemon does the same once a day, so gc is for a
mailbox without a running daemon.`,
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
				return term.PrintJSON(cmd.OutOrStdout(), gone)
			}
			return printCollected(cmd.OutOrStdout(), gone, dry)
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "print what would be removed, and remove nothing")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// collect removes old files and records under the lock of the root.
func collect(ctx context.Context, cfg config.Config, log zerolog.Logger, dry bool) (gone retention.Collected, err error) {
	r := &resources{}
	defer r.close()
	err = r.openBox(cfg)
	if locked, ok := errors.AsType[*mailbox.LockedError](err); ok {
		return gone, fmt.Errorf("%w, which collects by itself once a day", locked)
	}
	if err != nil {
		return gone, err
	}
	if err := r.openState(cfg, log); err != nil {
		return gone, err
	}
	return retention.Collector(r.parts()).Collect(ctx, retention.Policy(cfg.Retention), time.Now(), dry)
}

func printCollected(w io.Writer, gone retention.Collected, dry bool) error {
	verb := "removed"
	if dry {
		verb = "would remove"
	}
	_, err := fmt.Fprintf(w, "%s %d run directories, %d worktrees, %d replaced results, %d days of dead letters (%d bytes); %d requests, %d events and %d messages of the ledger\n",
		verb, gone.Runs, gone.Clones, gone.History, gone.Rejected, gone.Bytes, gone.Bodies, gone.Events, gone.Messages)
	return err
}
