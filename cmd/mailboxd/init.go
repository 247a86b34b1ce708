package main

import (
	"cmp"
	"path/filepath"

	"github.com/spf13/cobra"

	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/operating/config"
	"mailboxd/internal/operating/setup"
)

func initCommand(g *globals) *cobra.Command {
	var f setup.InitOptions
	var e initEditors
	yes := false
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write a first configuration with a working agent",
		Long: `Write a configuration with a small shell agent and the coding agents found on
PATH, and create the mailbox outside /tmp, where it is not cleaned up. Init
overwrites nothing and changes no other file. At a terminal it asks in which
project the coding agents work, what they may do there, which of them to add, and
whether in a sandbox. Elsewhere, and with --yes, it takes the defaults. All of them
work in the current directory, or the repository that it is part of: in a
repository with a commit, each run edits a worktree for you to review; elsewhere,
they may only read. They get a sandbox if the machine has one. Without such a directory, as in the
home directory, they read in an empty directory for each task.

With --editors it also enters the MCP server in the editors found on PATH, shows
each change first, and keeps a configuration that is there.`,
		Example: `  mailboxd init
  mailboxd init --yes
  mailboxd init --dry-run
  mailboxd init --editors
  mailboxd init --config ./box/config.yaml --root ./box/mail`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.File, f.Root, f.Schema = cmp.Or(g.config, config.DefaultPath()), g.root, config.Schema
			path, err := filepath.Abs(f.File)
			f.IsDefault = err == nil && path == config.DefaultPath()
			if err := e.check(yes, f.DryRun); err != nil {
				return err
			}
			if e.remove {
				return e.run(cmd, g, yes, f.DryRun)
			}
			f.Keep = e.enter
			if term.Interactive() && !yes {
				f.Ask = func(question string) (string, error) { return term.Prompt(cmd.Context(), question) }
			}
			if err := setup.Init(cmd.Context(), cmd.OutOrStdout(), f); err != nil || !e.enter {
				return err
			}
			return e.run(cmd, g, yes, f.DryRun)
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "ask nothing: take the defaults, as without a terminal")
	cmd.Flags().BoolVar(&f.DryRun, "dry-run", false, "print what would be written, and write nothing")
	cmd.Flags().BoolVar(&f.Force, "force", false, "overwrite existing files, and keep each as FILE.backup")
	cmd.Flags().BoolVar(&e.enter, "editors", false, "also enter the MCP server in the editors found on PATH")
	cmd.Flags().BoolVar(&e.remove, "remove-editors", false, "only remove the MCP server from the editors found on PATH")
	cmd.MarkFlagsMutuallyExclusive("editors", "remove-editors")
	return cmd
}

// initEditors are the flags of init for editors.
type initEditors struct{ enter, remove bool }

// check refuses a change that nobody can agree to, before anything is written.
func (e initEditors) check(yes, dryRun bool) error {
	if (e.enter || e.remove) && !yes && !dryRun && !term.Interactive() {
		return exit.With(exit.Usage, "there is no terminal to ask at; add --yes, or --dry-run to see the changes")
	}
	return nil
}

func (e initEditors) run(cmd *cobra.Command, g *globals, yes, dryRun bool) error {
	command, err := serverCommand(g)
	if err != nil {
		return err
	}
	change := setup.EditorChange{Command: command, Remove: e.remove}
	switch {
	case dryRun:
		change.Agree = func() (bool, error) { return false, nil }
	case !yes:
		change.Agree = func() (bool, error) { return term.Confirm(cmd.Context(), "Do it?") }
	}
	return setup.ChangeEditors(cmd.Context(), cmd.OutOrStdout(), change)
}
