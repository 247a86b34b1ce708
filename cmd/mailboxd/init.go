package main

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"
)

//go:embed template/config.yaml
var configTemplate string

//go:embed template/hello.sh
var helloAgent string

func initCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "init",
		Short: "Write a first configuration with an agent that answers",
		Long: `Init writes a configuration and a small shell agent beside it, and makes the
mailbox's directory, where nothing cleans up as it does under /tmp. It overwrites
nothing and touches no other file.`,
		Example: "  mailboxd init\n  mailboxd init --config ./box/config.yaml --root ./box/mail",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return initialise(cmd.OutOrStdout(), cmp.Or(g.config, defaultConfigPath()), g.root)
		},
	}
}

// initialise writes the configuration that names the mailbox at root, or at
// the proposed place when that is empty.
func initialise(w io.Writer, config, root string) error {
	config, err := filepath.Abs(config)
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
	quoted, err := jsontext.AppendQuote(nil, root) // YAML reads what JSON quotes
	if err != nil {
		return fmt.Errorf("write %q into a configuration: %w", root, err)
	}
	agent := filepath.Join(filepath.Dir(config), "agents", "hello.sh")
	if err := os.MkdirAll(filepath.Dir(agent), 0o700); err != nil {
		return err
	}
	err = writeNew(config, strings.ReplaceAll(configTemplate, "@ROOT@", string(quoted)), 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there already: edit it, or write another with --config FILE", config)
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "wrote  ", config)
	if err := writeNew(agent, helloAgent, 0o700); err == nil {
		fmt.Fprintln(w, "wrote  ", agent)
	} else if !errors.Is(err, fs.ErrExist) { // one that is there serves this configuration too
		return err
	}
	return introduce(w, config, root)
}

// introduce makes the mailbox and says how to go on.
func introduce(w io.Writer, config, root string) error {
	if err := os.MkdirAll(root, 0o700); err != nil {
		return err
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
		return "", fmt.Errorf("propose a mailbox: %w; name one with --root", err)
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
