package setup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/term"
)

// serverName is the name of our MCP server in editors.
const serverName = "mailboxd"

// An editor is a program whose model can use the MCP server. It has a command of its own that
// enters servers, or a file.
type editor struct {
	name    string // in --install
	program string // on PATH
	as      string // the requester of its tasks

	add, remove func(server []string) []string // arguments of the program; nil: it has a file

	isThere, isMissing string // what the program says of an entry that keeps it from adding or removing one; "": none does

	file  func() (string, error)     // where servers are entered
	at    string                     // the member of the file that has the servers
	entry func(command []string) any // the member for one server
}

// editors are the known ones. docs/editors.md names the documentation of each.
var editors = []editor{
	{
		name: "claude", program: "claude", as: "claude-code",
		add: func(server []string) []string {
			return append([]string{"mcp", "add", "--scope", "user", serverName, "--"}, server...)
		},
		remove:    func([]string) []string { return []string{"mcp", "remove", "--scope", "user", serverName} },
		isThere:   "already exists in user config",
		isMissing: "No MCP server named",
	},
	{
		name: "codex", program: "codex", as: "codex",
		add:    func(server []string) []string { return append([]string{"mcp", "add", serverName, "--"}, server...) },
		remove: func([]string) []string { return []string{"mcp", "remove", serverName} },
	},
	{
		name: "gemini", program: "gemini", as: "gemini",
		add: func(server []string) []string { // its options end after the server's first argument
			return slices.Concat([]string{"mcp", "add", "--scope", "user", serverName}, server[:2], []string{"--"}, server[2:])
		},
		remove: func([]string) []string { return []string{"mcp", "remove", "--scope", "user", serverName} },
	},
	{
		name: "opencode", program: "opencode", as: "opencode",
		file: func() (string, error) { return configFile("opencode", "opencode.json") }, at: "mcp",
		entry: func(command []string) any {
			return struct {
				Type    string   `json:"type"`
				Command []string `json:"command"`
				Enabled bool     `json:"enabled"`
			}{"local", command, true}
		},
	},
	{
		name: "cursor", program: "cursor", as: "cursor",
		file: func() (string, error) { return homeFile(".cursor", "mcp.json") }, at: "mcpServers",
		entry: func(command []string) any {
			return struct {
				Command string   `json:"command"`
				Args    []string `json:"args"`
			}{command[0], command[1:]}
		},
	},
}

// EditorNames returns the names of the editors that InstallServer knows.
func EditorNames() (names []string) {
	for _, e := range editors {
		names = append(names, e.name)
	}
	return names
}

// ChangeEditors makes a change in each editor that is installed. One that fails doesn't keep the
// next from it.
func ChangeEditors(ctx context.Context, w io.Writer, c EditorChange) error {
	var wrong []error
	found := foundEditors()
	for _, c.Editor = range found {
		fmt.Fprintln(w)
		if err := c.Make(ctx, w); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", c.Editor, err))
		}
	}
	if len(found) == 0 {
		fmt.Fprintf(w, "none of %s is on PATH\n", strings.Join(EditorNames(), ", "))
	}
	return errors.Join(wrong...)
}

// foundEditors returns the names of the editors that are installed.
func foundEditors() (names []string) {
	for _, e := range editors {
		if _, err := exec.LookPath(e.program); err == nil {
			names = append(names, e.name)
		}
	}
	return names
}

// An EditorChange enters the MCP server in an editor, or removes it there.
type EditorChange struct {
	Editor  string
	Command []string // the path of mailboxd and its first argument, mcp, and then its options
	Remove  bool

	// Agree asks a person for an agreement; nil: it is given.
	Agree func() (bool, error)
}

// Make shows the change, and makes it if the person agrees.
func (c EditorChange) Make(ctx context.Context, w io.Writer) error {
	at := slices.IndexFunc(editors, func(e editor) bool { return e.name == c.Editor })
	if at < 0 {
		return exit.With(exit.Usage, "%q is none of the editors %s; docs/editors.md has the entries of others", c.Editor, strings.Join(EditorNames(), ", "))
	}
	e := editors[at]
	c.Command = append(slices.Clone(c.Command), "--as", e.as)
	if e.add != nil {
		return c.run(ctx, w, e)
	}
	return c.edit(w, e)
}

// agreed asks the person.
func (c EditorChange) agreed(w io.Writer) (bool, error) {
	if c.Agree == nil {
		return true, nil
	}
	yes, err := c.Agree()
	if err == nil && !yes {
		fmt.Fprintln(w, "Nothing was changed.")
	}
	return yes, err
}

// run has the editor's own program make the change.
func (c EditorChange) run(ctx context.Context, w io.Writer, e editor) error {
	args := e.add(c.Command)
	if c.Remove {
		args = e.remove(c.Command)
	}
	if _, err := exec.LookPath(e.program); err != nil {
		return fmt.Errorf("find %s: %w; install it, or put its directory on PATH", e.program, err)
	}
	fmt.Fprintf(w, "Runs:\n  %s\n", commandLine(append([]string{e.program}, args...)))
	if yes, err := c.agreed(w); err != nil || !yes {
		return err
	}
	said, err := e.call(ctx, w, args)
	switch {
	case err == nil, c.Remove && saidThat(said, e.isMissing):
		return nil
	case c.Remove || !saidThat(said, e.isThere):
		return err
	}
	remove := e.remove(c.Command)
	fmt.Fprintf(w, "Replaces the entry:\n  %s\n", commandLine(append([]string{e.program}, remove...)))
	if _, err := e.call(ctx, w, remove); err != nil {
		return err
	}
	_, err = e.call(ctx, w, args)
	return err
}

func saidThat(said []byte, words string) bool {
	return words != "" && bytes.Contains(said, []byte(words))
}

// call runs the editor's program, and prints and returns what it said.
func (e editor) call(ctx context.Context, w io.Writer, args []string) (said []byte, err error) {
	said, err = exec.CommandContext(ctx, e.program, args...).CombinedOutput()
	for line := range strings.Lines(string(said)) {
		fmt.Fprintln(w, " ", term.OneLine(line))
	}
	if err != nil {
		return said, fmt.Errorf("run %s: %w", e.program, err)
	}
	return said, nil
}

// edit changes the file of an editor.
func (c EditorChange) edit(w io.Writer, e editor) error {
	path, err := e.file()
	if err != nil {
		return err
	}
	old, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	var entry any
	if !c.Remove {
		entry = e.entry(c.Command)
	}
	text, err := withMember(old, e.at, serverName, entry)
	if err != nil {
		return fmt.Errorf("change %s: %w; it is unchanged, docs/editors.md has the entry", path, err)
	}
	if bytes.Equal(text, old) {
		_, err := fmt.Fprintf(w, "%s stays as it is.\n", path)
		return err
	}
	fmt.Fprintf(w, "Writes %s:\n", path)
	for line := range strings.Lines(string(text)) {
		fmt.Fprint(w, "  ", line)
	}
	if yes, err := c.agreed(w); err != nil || !yes {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return replaceFile(path, text)
}

// commandLine is a command as a person would type it.
func commandLine(command []string) string {
	words := make([]string, len(command))
	for i, word := range command {
		words[i] = term.ShellWord(word)
	}
	return strings.Join(words, " ")
}

// configFile is the path of a file below the user's configuration directory.
func configFile(names ...string) (string, error) {
	if dir := os.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(append([]string{dir}, names...)...), nil
	}
	return homeFile(append([]string{".config"}, names...)...)
}

// homeFile is the path of a file below the user's home directory.
func homeFile(names ...string) (string, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the file of the editor: %w", err)
	}
	return filepath.Join(append([]string{home}, names...)...), nil
}
