package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"
)

// A cli is an agent program that we know how to ask without a terminal.
type cli struct {
	name  string
	args  []string // after its path
	stdin string   // what it reads
	about string   // what it is, for its manifest
	notes []string // what a person should know, and where it is documented
	needs string   // what a person has to add before it can run; "" is nothing
}

// clis are in the order in which they are looked for. Each comes with the page
// that says how it is used without a terminal.
var clis = []cli{
	{
		name: "claude", args: []string{"-p"}, stdin: "prompt", about: "Claude Code, without a terminal.",
		notes: []string{
			"Claude Code prints its answer and exits; what it would ask permission for it leaves undone.",
			"https://docs.anthropic.com/en/docs/claude-code/sdk/sdk-headless",
		},
	},
	{
		name: "codex", args: []string{"exec", "--skip-git-repo-check", "-"}, stdin: "prompt", about: "Codex, without a terminal.",
		notes: []string{
			"Codex reads its prompt from standard input (-), in a sandbox that may only read.",
			"https://developers.openai.com/codex/noninteractive",
		},
	},
	{
		name: "cursor-agent", args: []string{"-p", "--output-format", "text", "Do the task in {{.TaskFile}} and print your answer."}, stdin: "none",
		about: "Cursor's agent, without a terminal.",
		notes: []string{"https://cursor.com/docs/cli/headless"},
		needs: "a cwd that it is to trust (--trust)",
	},
	{
		name: "gemini", args: []string{"--output-format", "text"}, stdin: "prompt", about: "Gemini CLI, without a terminal.",
		notes: []string{
			"Gemini CLI is headless when nothing of it is a terminal, and takes its prompt from standard input.",
			"https://geminicli.com/docs/cli/headless",
		},
	},
	{
		name: "ainl", args: []string{"run", "PROGRAM.ainl"}, stdin: "none", about: "An AINL program.",
		notes: []string{"https://pypi.org/project/ainativelang"},
		needs: "the program to run, in place of PROGRAM.ainl",
	},
	{
		name: "aider", args: []string{"--yes", "--no-stream", "--message-file", "{{.RunDir}}/prompt.txt"}, stdin: "prompt", about: "Aider, without a terminal.",
		notes: []string{"It edits and commits in its cwd. https://aider.chat/docs/scripting.html"},
		needs: "a cwd with the project that it may edit",
	},
}

// A foundCLI is one that is installed.
type foundCLI struct {
	cli
	path string
}

// findCLIs looks for them on PATH. A path is made absolute, because a service
// has another PATH; a symlink stays one, because an upgrade moves it.
func findCLIs() []foundCLI {
	var found []foundCLI
	for _, c := range clis {
		path, err := exec.LookPath(c.name)
		if err == nil {
			path, err = filepath.Abs(path)
		}
		if err == nil && !strings.Contains(path, "{{") { // a command is made of templates
			found = append(found, foundCLI{c, path})
		}
	}
	return found
}

// noCLI shows how an agent program is entered, where none was found.
const noCLI = `
  # A coding agent that is installed and logged in, working in a project of yours:
  # - id: reviewer
  #   exec: {command: [/path/to/claude, -p], stdin: prompt, output: text, cwd: /home/me/src}
  #   timeout: 30m
`

// entry is how the program is written into a configuration.
func (c foundCLI) entry() string {
	command, err := json.Marshal(append([]string{c.path}, c.args...)) // YAML reads what JSON quotes
	if err != nil {
		return "" // a path that is no text
	}
	mark, lines := "", c.notes
	if c.needs != "" {
		mark, lines = "# ", append(lines[:len(lines):len(lines)], "It needs "+c.needs+":")
	}
	var text strings.Builder
	for _, line := range lines {
		fmt.Fprintf(&text, "  # %s\n", line)
	}
	for _, line := range []string{
		"- id: " + c.name,
		"  manifest: agents/" + c.name + ".json",
		fmt.Sprintf("  exec: {command: %s, stdin: %s, output: text}", command, c.stdin),
		"  timeout: 30m",
	} {
		fmt.Fprintf(&text, "  %s%s\n", mark, line)
	}
	return text.String()
}

// fate says what became of the program in the configuration.
func (c foundCLI) fate() string {
	if c.needs != "" {
		return "(commented out: it needs " + c.needs + ")"
	}
	return "(agent " + c.name + ")"
}
