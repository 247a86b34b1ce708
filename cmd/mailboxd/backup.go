package main

import (
	"cmp"
	"context"
	"errors"

	"github.com/spf13/cobra"

	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/operating/backup"
	"mailboxd/internal/operating/config"
)

func backupCommand(g *globals) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "backup DIR",
		Short: "Copy the mailbox and its state to a directory",
		Long: `Copy the mailbox, the ledger and the run directories to a new directory, with mode
0700. The daemon can go on: the ledger in the copy is one moment. The
configuration is not part of the copy, and neither are the clones of repositories.`,
		Example: `  mailboxd backup ~/backups/monday
  mailboxd --config second.yaml backup /media/disk/second --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, at, err := located(g, cmd)
			if err != nil {
				return err
			}
			made, err := term.Spin(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), func(context.Context) string { return "copying " + at.Root },
				func() (backup.Record, error) { return backup.Make(cmd.Context(), at, args[0], version()) })
			if err != nil {
				return err
			}
			if asJSON {
				return term.PrintJSON(cmd.OutOrStdout(), made)
			}
			return made.Print(cmd.OutOrStdout(), args[0])
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// located returns the configuration, and where its mailbox and its state are.
func located(g *globals, cmd *cobra.Command) (config.Config, backup.Location, error) {
	cfg, err := g.partial(cmd.ErrOrStderr())
	if err != nil {
		return cfg, backup.Location{}, err
	}
	at, err := backup.LocationOf(cfg.Root, cfg.StateDir)
	return cfg, at, err
}

func restoreCommand(g *globals) *cobra.Command {
	asJSON, replace := false, false
	cmd := &cobra.Command{
		Use:   "restore DIR",
		Short: "Restore the mailbox and its state from a backup",
		Long: `Restore the state, and the mailbox unless it is still there, to the paths of the
configuration. The daemon must not run. Every task without a result is held as
recovered, since it may have run after the backup; so is each task whose line came
later. The command lists them. Nothing runs before mailboxd release.`,
		Example: `  mailboxd restore ~/backups/monday
  mailboxd restore ~/backups/monday --replace    # renames the state there`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, at, err := located(g, cmd)
			if err != nil {
				return err
			}
			opts := backup.Options{Replace: replace, Reading: cfg.Intake.Reading(), MaxLine: cfg.Intake.MaxLineBytes}
			done, err := term.Spin(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), func(context.Context) string { return "restoring " + at.Root },
				func() (backup.Restoration, error) { return backup.Restore(cmd.Context(), args[0], at, opts) })
			if err != nil {
				return err
			}
			if asJSON {
				return term.PrintJSON(cmd.OutOrStdout(), done)
			}
			return done.Print(cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&replace, "replace", false, "rename a state directory that is there")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func moveCommand(g *globals) *cobra.Command {
	state := ""
	cmd := &cobra.Command{
		Use:   "move [DIR]",
		Short: "Move the mailbox and its state to another place",
		Long: `Move the mailbox to DIR, and its state to the directory that belongs to it there:
the default of DIR, or state_dir of the configuration. The daemon must not run,
and no agent. Reading goes on where it stopped. The command prints what to set in
the configuration, which it does not change.`,
		Example: `  mailboxd move /srv/mail
  mailboxd move /srv/mail --state /srv/mail.state
  mailboxd move --state /srv/mail.state             # only the state`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && state == "" {
				return exit.With(exit.Usage, "name the new directory of the mailbox, or --state; see mailboxd move --help")
			}
			cfg, from, err := located(g, cmd)
			if err != nil {
				return err
			}
			if len(args) > 0 {
				cfg.Root = args[0]
			}
			if state != "" {
				cfg.StateDir = state
			}
			to, err := backup.LocationOf(cfg.Root, cfg.StateDir)
			if err == nil {
				err = backup.Move(cmd.Context(), from, to)
			}
			if _, left := errors.AsType[*backup.LeftError](err); err != nil && !left {
				return err
			}
			return errors.Join(err, to.PrintMoved(cmd.OutOrStdout(), from, cfg.StateDir != "", cmp.Or(g.config, tilde(config.DefaultPath()))))
		},
	}
	cmd.Flags().StringVar(&state, "state", "", "new state directory (default: the one of the mailbox's new path)")
	return cmd
}
