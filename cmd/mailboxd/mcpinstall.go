package main

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/operating/config"
	"mailboxd/internal/operating/setup"
)

// editorFlags are the flags that enter the MCP server in an editor.
type editorFlags struct {
	install, remove string // names of editors
	yes             bool
}

func (f *editorFlags) add(cmd *cobra.Command) {
	names := strings.Join(setup.EditorNames(), ", ")
	cmd.Flags().StringVar(&f.install, "install", "", "enter the server in `EDITOR`: "+names)
	cmd.Flags().StringVar(&f.remove, "remove", "", "remove the server from `EDITOR`")
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "with --install and --remove: ask nothing")
	cmd.MarkFlagsMutuallyExclusive("install", "remove")
	cmd.MarkFlagsMutuallyExclusive("install", "as")
	cmd.MarkFlagsMutuallyExclusive("remove", "as")
}

func (f *editorFlags) given() bool { return f.install != "" || f.remove != "" }

func (f *editorFlags) run(cmd *cobra.Command, g *globals) error {
	command, err := serverCommand(g)
	if err != nil {
		return err
	}
	change := setup.EditorChange{Editor: f.install + f.remove, Command: command, Remove: f.remove != ""}
	switch {
	case f.yes:
	case term.Interactive():
		change.Agree = func() (bool, error) { return term.Confirm(cmd.Context(), "Do it?") }
	default:
		change.Agree = func() (bool, error) {
			return false, exit.With(exit.Usage, "there is no terminal to ask at; add --yes")
		}
	}
	return change.Make(cmd.Context(), cmd.OutOrStdout())
}

// serverCommand is the command that an editor starts. An editor has other variables and another
// working directory, so the command has absolute paths, and names what variables say here.
func serverCommand(g *globals) ([]string, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	file := g.config
	if file == "" && os.Getenv("XDG_CONFIG_HOME") != "" {
		file = config.DefaultPath()
	}
	command := []string{program, "mcp"}
	for _, option := range []struct{ name, path string }{{"--config", file}, {"--root", cmp.Or(g.root, os.Getenv("AINL_AGENT_ROOT"))}} {
		if option.path == "" {
			continue
		}
		path, err := filepath.Abs(option.path)
		if err != nil {
			return nil, err
		}
		command = append(command, option.name, path)
	}
	return command, nil
}
