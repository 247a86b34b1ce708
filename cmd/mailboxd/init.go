package main

import (
	"cmp"
	"path/filepath"

	"github.com/spf13/cobra"

	"mailboxd/internal/config"
	"mailboxd/internal/setup"
)

func initCommand(g *globals) *cobra.Command {
	var f setup.InitOptions
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write a first configuration with an agent that answers",
		Long: `Init writes a configuration, a small shell agent and what agent programs it finds
on PATH, and makes the mailbox's directory, where nothing cleans up as it does
under /tmp. It overwrites nothing and touches no other file, least of all one of
your shell's.`,
		Example: `  mailboxd init
  mailboxd init --dry-run                                        # only show what it would write
  mailboxd init --config ./box/config.yaml --root ./box/mail`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.File, f.Root = cmp.Or(g.config, config.DefaultPath()), g.root
			path, err := filepath.Abs(f.File)
			f.IsDefault = err == nil && path == config.DefaultPath()
			return setup.Init(cmd.OutOrStdout(), f)
		},
	}
	cmd.Flags().BoolVar(&f.DryRun, "dry-run", false, "only show what would be written")
	cmd.Flags().BoolVar(&f.Force, "force", false, "write anew what is there, and keep what was beside it as FILE.backup")
	return cmd
}
