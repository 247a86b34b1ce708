package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"mailboxd/internal/cli/term"
)

// TestEveryHelpTextFitsAScreenAndHasAnExample reads the help of every command.
func TestEveryHelpTextFitsAScreenAndHasAnExample(t *testing.T) {
	t.Setenv("HOME", "/home/somebody-with-a-long-name")
	root := rootCommand()
	root.InitDefaultHelpCmd()
	if len(root.Commands()) < 30 {
		t.Fatalf("%d commands; want all", len(root.Commands()))
	}
	eachCommand(root, func(cmd *cobra.Command) {
		name := cmd.CommandPath()
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") || cmd.Long == "" || cmd.Example == "" {
			t.Errorf("%s has the short text %q; want one without a full stop, a longer text and an example", name, cmd.Short)
		}
		for line := range strings.Lines(helpOf(t, cmd)) {
			if term.Width(strings.TrimRight(line, "\n")) > helpColumns {
				t.Errorf("%s --help has more than %d columns: %q", name, helpColumns, line)
			}
		}
	})
}

// eachCommand calls f for a command and those below it that a person sees.
func eachCommand(cmd *cobra.Command, f func(*cobra.Command)) {
	if cmd.Hidden {
		return
	}
	f(cmd)
	for _, sub := range cmd.Commands() {
		eachCommand(sub, f)
	}
}

func helpOf(t *testing.T, cmd *cobra.Command) string {
	t.Helper()
	var out bytes.Buffer
	cmd.SetOut(&out)
	if err := cmd.Help(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestTheReadmeListsEveryCommand compares the table of commands with the program.
func TestTheReadmeListsEveryCommand(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(readme), "\n## Commands\n")
	table, _, _ = strings.Cut(table, "\n\nEach command")
	for _, cmd := range rootCommand().Commands() {
		if !cmd.Hidden && cmd.Name() != "help" && !strings.Contains(table, "`"+cmd.Name()+"`") {
			t.Errorf("README's table of commands lacks `%s`", cmd.Name())
		}
	}
}
