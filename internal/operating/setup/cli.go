package setup

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"

	"mailboxd/internal/running/agent"
	"mailboxd/internal/sandboxing/sandbox"
)

// A cli is a known agent program.
type cli struct {
	name    string
	profile string   // which knows how it is asked; "": the next two say that
	args    []string // after its path
	stdin   string   // what it reads
	about   string   // what it is, for its manifest
	notes   []string // what a person should know, and where it is documented
	needs   string   // what a person has to add before it can run; "" is nothing

	inProject bool // it needs nothing but a project
}

// clis are the known agent programs, in the order of the search. Each has the page of
// its documentation.
var clis = []cli{
	{
		name: "claude", profile: "claude", about: "Claude Code, without a terminal.",
		notes: []string{
			"Claude Code prints its answer and exits. It skips actions that it has no permission for.",
			"https://code.claude.com/docs/en/headless",
		},
	},
	{
		name: "codex", profile: "codex", about: "Codex, without a terminal.",
		notes: []string{
			"Codex runs commands in a sandbox of its own.",
			"https://developers.openai.com/codex/noninteractive",
		},
	},
	{
		name: "cursor-agent", profile: "cursor", about: "Cursor's agent, without a terminal.",
		notes: []string{
			"Cursor's agent skips actions that need a permission. It trusts its directory.",
			"https://cursor.com/docs/cli/headless",
		},
	},
	{
		name: "gemini", profile: "gemini", about: "Gemini CLI, without a terminal.",
		notes: []string{
			"Gemini CLI skips actions that it has no permission for. It trusts its directory.",
			"https://geminicli.com/docs/cli/headless",
		},
	},
	{
		name: "opencode", profile: "opencode", about: "opencode, without a terminal.",
		notes: []string{
			"opencode works as an agent of its own with the permission below.",
			"https://opencode.ai/docs/cli",
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
		needs: "a cwd with the project that it may edit", inProject: true,
	},
}

// A foundCLI is an agent program that is installed.
type foundCLI struct {
	cli
	path    string
	project string   // where it works; "": in a directory of each task
	may     access   // what it may do there
	env     []string // names of variables with its login that are set here

	network   []string        // of the sandbox; nil: the hosts of its profile
	sandbox   sandbox.Profile // "": none
	noSandbox string          // why it has none, although its profile knows what it needs in one
}

// findCLIs looks for the programs on PATH. It makes paths absolute, since a service has
// another PATH. It keeps symlinks, since an upgrade moves their targets.
func findCLIs() []foundCLI {
	var found []foundCLI
	for _, c := range clis {
		path, err := exec.LookPath(c.name)
		if err == nil {
			path, err = filepath.Abs(path)
		}
		if err == nil && !strings.Contains(path, "{{") { // a command is made of templates
			found = append(found, foundCLI{cli: c, path: path, env: variablesSet(c.profile)})
		}
	}
	return found
}

// variablesSet returns the variables with a program's login that are set in this environment:
// an agent gets only those that its entry names.
func variablesSet(profile string) (names []string) {
	for _, name := range agent.Profile(profile).Variables() {
		if os.Getenv(name) != "" {
			names = append(names, name)
		}
	}
	return names
}

// noCLI shows the entry of an agent program when none is installed.
const noCLI = `
  # A coding agent that is installed and logged in, working in a project of yours:
  # - id: reviewer
  #   profile: claude
  #   exec: {command: [/path/to/claude], cwd: /home/me/src}
  #   timeout: 30m
`

// entry is the entry of the program in a configuration.
func (c foundCLI) entry() string {
	exec, err := c.exec()
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
	entry := []string{"- id: " + c.name, "  manifest: agents/" + c.name + ".json"}
	if c.profile != "" {
		entry = append(entry, "  profile: "+c.profile)
	}
	if permission := c.permission(); permission != "" {
		entry = append(entry, "  permission: "+string(permission))
	}
	entry = append(entry, "  exec: {"+exec+"}", "  timeout: 30m")
	if c.sandbox != "" {
		network := ""
		if c.network != nil {
			hosts, err := json.Marshal(c.network)
			if err != nil {
				return ""
			}
			network = ", network: " + string(hosts)
		}
		entry = append(entry, "  sandbox: {profile: "+string(c.sandbox)+network+"} # its project, its login, the hosts of its API; see docs/sandbox.md")
	}
	for _, line := range entry {
		fmt.Fprintf(&text, "  %s%s\n", mark, line)
	}
	return text.String()
}

// exec is how the program is run, as far as its profile does not say it.
func (c foundCLI) exec() (string, error) {
	command, err := json.Marshal(append([]string{c.path}, c.args...)) // YAML reads what JSON quotes
	text := "command: " + string(command)
	if c.profile == "" {
		text += ", stdin: " + c.stdin + ", output: text"
	}
	if len(c.env) > 0 {
		text += ", env: [" + strings.Join(c.env, ", ") + "]"
	}
	if c.project != "" && err == nil {
		var dir []byte
		dir, err = json.Marshal(c.project)
		text += fmt.Sprintf(", cwd: %s, workdirs: [%[1]s]", dir)
		if c.may == inWorktree {
			text += ", worktree: true"
		}
	}
	return text, err
}

// note says how the program is entered in the configuration.
func (c foundCLI) note() string {
	if c.needs != "" {
		return "(commented out: it needs " + c.needs + ")"
	}
	note := "agent " + c.name
	if c.project != "" {
		note += ", works in " + c.project
	}
	note += c.mayWords()
	switch {
	case c.sandbox != "":
		note += ", in a sandbox"
	case c.noSandbox != "":
		note += ", without a sandbox: " + c.noSandbox
	}
	return "(" + note + ")"
}

// KnownCLIs returns the names of the agent programs that init looks for.
func KnownCLIs() (names []string) {
	for _, c := range clis {
		names = append(names, c.name)
	}
	return names
}
