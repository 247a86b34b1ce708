package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

//go:embed template/config.yaml
var configTemplate string

//go:embed template/hello.sh
var helloAgent string

func initCommand() *cobra.Command {
	dir, root := "", ""
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write a first configuration with an agent that answers",
		Long: `Init writes a configuration and a small shell agent beside it, and makes the
mailbox's directory, where nothing cleans up as it does under /tmp. It overwrites
nothing and touches no other file.`,
		Example: "  mailboxd init\n  mailboxd init --dir ./box",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dir == "" {
				dir = filepath.Dir(defaultConfigPath())
			}
			return initialise(cmd.OutOrStdout(), dir, root)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "directory for the configuration (default "+filepath.Dir(defaultConfigPath())+")")
	cmd.Flags().StringVar(&root, "mailbox", "", "directory for the mailbox (default in the user's state directory)")
	return cmd
}

func initialise(w io.Writer, dir, root string) error {
	dir, err := filepath.Abs(dir)
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
	if err := os.MkdirAll(filepath.Join(dir, "agents"), 0o700); err != nil {
		return err
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return err
	}
	config := filepath.Join(dir, "config.yaml")
	files := []struct {
		path, text string
		mode       fs.FileMode
	}{
		{config, strings.ReplaceAll(configTemplate, "@ROOT@", root), 0o600},
		{filepath.Join(dir, "agents", "hello.sh"), helloAgent, 0o700},
	}
	for _, f := range files {
		if err := writeNew(f.path, f.text, f.mode); err != nil {
			return err
		}
		fmt.Fprintln(w, "wrote  ", f.path)
	}
	fmt.Fprintln(w, "mailbox", root)
	option := ""
	if config != defaultConfigPath() {
		option = " --config " + config
	}
	fmt.Fprintf(w, `
Next, in two terminals:
  mailboxd serve%[1]s
  mailboxd send%[1]s --agent hello --type greeting --payload '{"name": "you"}' --wait

AINL programs find this mailbox with:
  export AINL_AGENT_ROOT=%[2]s
`, option, root)
	return nil
}

// proposedRoot is a mailbox in the user's state directory.
func proposedRoot() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "ainl_agents"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("propose a mailbox: %w; name one with --mailbox", err)
	}
	return filepath.Join(home, ".local", "state", "ainl_agents"), nil
}

// writeNew writes a file that must not be there yet.
func writeNew(path, text string, mode fs.FileMode) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}
