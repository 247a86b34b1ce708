// Package setup writes a first configuration, with the agent programs that it finds, and
// installs the service of the user.
package setup

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/term"
)

// InitOptions are what init writes, and how.
type InitOptions struct {
	File      string // of the configuration; "" when there is no home directory
	IsDefault bool   // commands find the file without --config
	Root      string // of the mailbox; "" for the proposed one
	Schema    []byte // of configurations, for editors
	DryRun    bool   // only show what would be written
	Force     bool   // replace files that exist, and keep backups
	Keep      bool   // do nothing if the configuration exists

	Ask func(question string) (string, error) // asks a person; nil: defaults are taken
}

// Init writes a configuration and makes the mailbox.
func Init(ctx context.Context, w io.Writer, f InitOptions) error {
	if f.File == "" {
		return exit.With(exit.Usage, "there is no $HOME for a configuration; name a file with --config")
	}
	file, err := filepath.Abs(f.File)
	root := f.Root
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
	_, err = os.Lstat(file)
	switch there := err == nil && !f.Force; {
	case there && f.Keep:
		_, err := fmt.Fprintln(w, "kept   ", file)
		return err
	case there && !f.DryRun:
		return fmt.Errorf("%s is there already: edit it, or write another with --config FILE, or anew with --force", file)
	}
	found, project := findCLIs(), proposedProject(file, root)
	if f.Ask == nil {
		setAccess(found, project, defaultAccess(project))
	} else if found, err = askAbout(found, project, f.Ask); err != nil {
		return fmt.Errorf("ask about the first configuration: %w; mailboxd init --yes takes the defaults", err)
	}
	f.File, f.Root = file, root
	if err := proposeSandboxes(ctx, f, found); err != nil {
		return fmt.Errorf("propose a sandbox: %w; mailboxd init --yes takes the defaults", err)
	}
	drafts, err := firstFiles(file, root, f.Schema, found)
	if err != nil {
		return err
	}
	for _, d := range drafts {
		if err := d.write(w, f); err != nil {
			return fmt.Errorf("write %s: %w", d.path, err)
		}
	}
	if f.DryRun {
		_, err := fmt.Fprintln(w, "would make", root)
		return err
	}
	return printNextSteps(w, f, found)
}

// printNextSteps makes the mailbox and prints what to do next.
func printNextSteps(w io.Writer, f InitOptions, found []foundCLI) error {
	if err := os.MkdirAll(f.Root, 0o700); err != nil {
		return err
	}
	fmt.Fprintln(w, "mailbox", f.Root)
	for _, c := range found {
		fmt.Fprintln(w, "found  ", c.path, c.note())
	}
	option := ""
	if !f.IsDefault {
		option = " --config " + term.ShellWord(f.File)
	}
	fmt.Fprint(w, worktreeHint(found, "mailboxd init --force"+option))
	fmt.Fprintf(w, `
Next, in two terminals:
  mailboxd serve%[1]s
  mailboxd send%[1]s --agent hello --type greeting --payload '{"name": "you"}' --wait
%[3]s
AINL programs find this mailbox with:
  export AINL_AGENT_ROOT=%[2]s
`, option, term.ShellWord(f.Root), askLine(option, found))
	return nil
}

// askLine is a command that asks the first coding agent; "" without one.
func askLine(option string, found []foundCLI) string {
	for _, c := range found {
		switch {
		case c.needs != "":
		case c.project != "":
			return fmt.Sprintf("  mailboxd ask%s %s \"what is this project about?\" --in %s --wait\n", option, c.name, term.ShellWord(c.project))
		default:
			return fmt.Sprintf("  mailboxd ask%s %s \"which tools do you have?\" --wait\n", option, c.name)
		}
	}
	return ""
}

// proposedRoot is the mailbox of AINL programs in this environment, or else PrivateRoot.
func proposedRoot() (string, error) {
	if root := os.Getenv("AINL_AGENT_ROOT"); root != "" {
		return root, nil
	}
	return PrivateRoot()
}

// PrivateRoot is the mailbox in the user's state directory.
func PrivateRoot() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "ainl_agents"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("propose a mailbox: %w; name one with --root", err)
	}
	return filepath.Join(home, ".local", "state", "ainl_agents"), nil
}
