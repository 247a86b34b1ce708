package setup

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"mailboxd/internal/exit"
	"mailboxd/internal/term"
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
		remove: func([]string) []string { return []string{"mcp", "remove", "--scope", "user", serverName} },
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

// FoundEditors returns the names of the editors that are installed.
func FoundEditors() (names []string) {
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
	program, err := exec.LookPath(e.program)
	if err != nil {
		return fmt.Errorf("find %s: %w; install it, or put its directory on PATH", e.program, err)
	}
	fmt.Fprintf(w, "Runs:\n  %s\n", commandLine(append([]string{e.program}, args...)))
	if yes, err := c.agreed(w); err != nil || !yes {
		return err
	}
	said, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	for line := range strings.Lines(string(said)) {
		fmt.Fprintln(w, " ", term.OneLine(line))
	}
	if err != nil {
		return fmt.Errorf("run %s: %w", e.program, err)
	}
	return nil
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
