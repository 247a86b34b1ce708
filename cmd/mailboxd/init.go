package main

import (
	"cmp"
	"path/filepath"

	"github.com/spf13/cobra"

	"mailboxd/internal/config"
	"mailboxd/internal/setup"
	"mailboxd/internal/term"
)

func initCommand(g *globals) *cobra.Command {
	var f setup.InitOptions
	yes := false
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write a first configuration with a working agent",
		Long: `Write a configuration with a small shell agent and the coding agents found on
PATH, and create the mailbox outside /tmp, where it is not cleaned up. Init
overwrites nothing and changes no other file. At a terminal it asks in which
project the coding agents work, which of them to add, with which tools, and
whether in a sandbox. Elsewhere, and with --yes, it takes the defaults: all of
them, in an empty directory for each task, in a sandbox if the machine has one.`,
		Example: `  mailboxd init
  mailboxd init --yes
  mailboxd init --dry-run
  mailboxd init --config ./box/config.yaml --root ./box/mail`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.File, f.Root, f.Schema = cmp.Or(g.config, config.DefaultPath()), g.root, config.Schema
			path, err := filepath.Abs(f.File)
			f.IsDefault = err == nil && path == config.DefaultPath()
			if term.Interactive() && !yes {
				f.Ask = func(question string) (string, error) { return term.Prompt(cmd.Context(), question) }
			}
			return setup.Init(cmd.Context(), cmd.OutOrStdout(), f)
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "ask nothing: take the defaults, as without a terminal")
	cmd.Flags().BoolVar(&f.DryRun, "dry-run", false, "print what would be written, and write nothing")
	cmd.Flags().BoolVar(&f.Force, "force", false, "overwrite existing files, and keep each as FILE.backup")
	return cmd
}
