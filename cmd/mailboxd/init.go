package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"mailboxd/internal/config"
	"mailboxd/internal/exit"
	"mailboxd/internal/term"

	"github.com/spf13/cobra"
)

func initCommand(g *globals) *cobra.Command {
	var f initFlags
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
			return initialise(cmd.OutOrStdout(), cmp.Or(g.config, config.DefaultPath()), g.root, f)
		},
	}
	cmd.Flags().BoolVar(&f.dry, "dry-run", false, "only show what would be written")
	cmd.Flags().BoolVar(&f.force, "force", false, "write anew what is there, and keep what was beside it as FILE.backup")
	return cmd
}

type initFlags struct{ dry, force bool }

// initialise writes the configuration that names the mailbox at root, or at
// the proposed place when that is empty.
func initialise(w io.Writer, file, root string, f initFlags) error {
	if file == "" {
		return exit.With(exit.Usage, "there is no $HOME for a configuration; name a file with --config")
	}
	file, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	if root == "" {
		if root, err = proposedRoot(); err != nil {
			return err
		}
	}
	if root, err = filepath.Abs(root); err != nil {
		return err
	}
	if _, err := os.Lstat(file); err == nil && !f.force && !f.dry {
		return fmt.Errorf("%s is there already: edit it, or write another with --config FILE, or anew with --force", file)
	}
	found := findCLIs()
	drafts, err := firstFiles(file, root, found)
	if err != nil {
		return err
	}
	for _, d := range drafts {
		if err := d.put(w, f); err != nil {
			return fmt.Errorf("write %s: %w", d.path, err)
		}
	}
	if f.dry {
		_, err := fmt.Fprintln(w, "would make", root)
		return err
	}
	return introduce(w, file, root, found)
}

// introduce makes the mailbox and says how to go on.
func introduce(w io.Writer, file, root string, found []foundCLI) error {
	if err := os.MkdirAll(root, 0o700); err != nil {
		return err
	}
	fmt.Fprintln(w, "mailbox", root)
	for _, c := range found {
		fmt.Fprintln(w, "found  ", c.path, c.fate())
	}
	option := ""
	if file != config.DefaultPath() {
		option = " --config " + term.ShellWord(file)
	}
	fmt.Fprintf(w, `
Next, in two terminals:
  mailboxd serve%[1]s
  mailboxd send%[1]s --agent hello --type greeting --payload '{"name": "you"}' --wait

AINL programs find this mailbox with:
  export AINL_AGENT_ROOT=%[2]s
`, option, term.ShellWord(root))
	return nil
}

// proposedRoot is the mailbox that AINL programs of this environment use
// already, or one of our own.
func proposedRoot() (string, error) {
	if root := os.Getenv("AINL_AGENT_ROOT"); root != "" {
		return root, nil
	}
	return privateRoot()
}

// privateRoot is a mailbox in the user's state directory.
func privateRoot() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "ainl_agents"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("propose a mailbox: %w; name one with --root", err)
	}
	return filepath.Join(home, ".local", "state", "ainl_agents"), nil
}
