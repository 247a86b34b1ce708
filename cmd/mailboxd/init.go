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
		Short: "Write a first configuration with a working agent",
		Long: `Write a configuration with a small shell agent and the coding agents found on
PATH, and create the mailbox outside /tmp, where it is not cleaned up. Init
overwrites nothing and changes no other file.`,
		Example: `  mailboxd init
  mailboxd init --dry-run
  mailboxd init --config ./box/config.yaml --root ./box/mail`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.File, f.Root = cmp.Or(g.config, config.DefaultPath()), g.root
			path, err := filepath.Abs(f.File)
			f.IsDefault = err == nil && path == config.DefaultPath()
			return setup.Init(cmd.OutOrStdout(), f)
		},
	}
	cmd.Flags().BoolVar(&f.DryRun, "dry-run", false, "print what would be written, and write nothing")
	cmd.Flags().BoolVar(&f.Force, "force", false, "overwrite existing files, and keep each as FILE.backup")
	return cmd
}
