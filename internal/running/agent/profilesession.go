package agent

import (
	"path/filepath"
	"slices"
	"strings"
)

// A sessionRecipe says where a known program keeps its sessions, and how it continues one.
type sessionRecipe struct {
	variable string // names the program's directory, if it is set
	base     string // that directory otherwise, below the home directory
	dir      string // of the sessions, below the program's directory

	file  func(id string) string                  // a pattern of the session's file, below dir; of a database, its file
	argv  func(argv []string, id string) []string // a command for a new session, made one that continues a session
	total string                                  // the pattern of the session's last count of tokens, if a run reports the count of the whole session
}

// sessionRecipes have their sources beside them. The files were looked at with the versions in
// internal/testtools/realagents/testdata/package.json.
var sessionRecipes = withHosted(map[Profile]sessionRecipe{
	Claude: { // https://code.claude.com/docs/en/cli-reference: --resume; https://code.claude.com/docs/en/env-vars: CLAUDE_CONFIG_DIR
		variable: "CLAUDE_CONFIG_DIR", base: ".claude", dir: "projects",
		file: func(id string) string { return "*/" + id + ".jsonl" }, // below a name for the directory in which it worked
		argv: withFlag("--resume"),
	},
	Codex: { // https://developers.openai.com/codex/cli/reference: codex exec resume; CODEX_HOME is in its config reference
		variable: "CODEX_HOME", base: ".codex", dir: "sessions",
		file: func(id string) string { return "*/*/*/rollout-*-" + id + ".jsonl" }, // by year, month and day
		argv: func(argv []string, id string) []string {
			at := slices.Index(argv, "-") // the prompt, which follows the id
			if at < 0 {
				at = len(argv)
			}
			return slices.Insert(slices.Clone(argv), at, "resume", id)
		},
		total: `"total_token_usage":`,
	},
	Cursor: { // https://cursor.com/docs/cli/reference/parameters: --resume; nothing says where sessions are
		argv: withFlag("--resume"),
	},
	Gemini: { // https://geminicli.com/docs/cli/session-management: ~/.gemini/tmp/<project>/chats, --resume
		variable: "GEMINI_CLI_HOME", dir: ".gemini/tmp",
		file: func(id string) string { return "*/chats/session-*-" + id[:min(len(id), 8)] + ".json*" },
		argv: withFlag("--resume"),
	},
	OpenCode: { // https://opencode.ai/docs/cli: --session; https://opencode.ai/docs/troubleshooting: ~/.local/share/opencode
		variable: "XDG_DATA_HOME", base: ".local/share", dir: "opencode",
		file: func(string) string { return "opencode.db" },
		argv: withFlag("--session"),
	},
})

// withHosted adds the programs that a host runs. They keep their sessions where they do without one,
// and the host continues them.
func withHosted(all map[Profile]sessionRecipe) map[Profile]sessionRecipe {
	for hosted, program := range hostedPrograms {
		recipe := all[program]
		recipe.argv, recipe.total = nil, ""
		all[hosted] = recipe
	}
	return all
}

func withFlag(name string) func([]string, string) []string {
	return func(argv []string, id string) []string { return append(slices.Clone(argv), name, id) }
}

// dirIn returns the directory of the sessions in an environment; "" if it is unknown.
func (s sessionRecipe) dirIn(env []string) string {
	var home, own string
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		switch {
		case name == "HOME":
			home = value
		case name == s.variable:
			own = value
		}
	}
	if own == "" {
		own = filepath.Join(home, s.base)
	}
	if s.dir == "" || !filepath.IsAbs(own) {
		return ""
	}
	return filepath.Join(own, s.dir)
}
