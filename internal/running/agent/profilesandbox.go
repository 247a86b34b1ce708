package agent

import (
	"slices"
	"strings"

	"mailboxd/internal/sandboxing/sandbox"
)

// SandboxNeeds are what a known program needs in a sandbox, besides its own files. The paths
// are below the home directory; those that don't exist are left out.
type SandboxNeeds struct {
	Write []string // the login, which the program renews
	Read  []string // settings, instructions and hooks: the same program runs them outside of the sandbox
	Hosts []string // the default of the network list

	Unneeded sandbox.UnneededHosts // what it asks for besides, and does without
	Env      []string              // NAME=value: variables with which it asks for fewer of these
}

// sandboxNeeds have their sources beside them.
var sandboxNeeds = map[Profile]SandboxNeeds{
	Claude: { // https://code.claude.com/docs/en/network-config, https://code.claude.com/docs/en/settings
		Write: []string{".claude/.credentials.json"},
		Read:  []string{".claude/settings.json", ".claude/CLAUDE.md", ".claude/agents", ".claude/commands", ".claude/skills", ".local/share/claude"},
		Hosts: []string{"api.anthropic.com", "platform.claude.com", "console.anthropic.com"},
		Unneeded: sandbox.UnneededHosts{ // https://code.claude.com/docs/en/network-config, https://code.claude.com/docs/en/data-usage
			{Host: "statsig.anthropic.com", For: "usage statistics"}, {Host: "*.sentry.io", For: "reports of errors"},
			{Host: "sentry.io", For: "reports of errors"}, {Host: "http-intake.logs.us5.datadoghq.com", For: "usage statistics"},
			{Host: "downloads.claude.ai", For: "updates"}, {Host: "storage.googleapis.com", For: "updates"}, {Host: "registry.npmjs.org", For: "updates"},
		},
		Env: []string{"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"}, // https://code.claude.com/docs/en/env-vars
	},
	Codex: { // https://developers.openai.com/codex/auth; chatgpt.com is the API of a login with ChatGPT
		Write: []string{".codex/auth.json"},
		Read:  []string{".codex/config.toml", ".codex/AGENTS.md", ".codex/prompts", ".codex/skills"},
		Hosts: []string{"api.openai.com", "chatgpt.com", "auth.openai.com"},
		Unneeded: sandbox.UnneededHosts{ // seen with version 0.169.0, and named in its program; it has no variable against them
			{Host: "ab.chatgpt.com", For: "usage statistics"}, {Host: "github.com", For: "its list of plugins"},
			{Host: "api.github.com", For: "its list of plugins, updates"}, {Host: "codeload.github.com", For: "its list of plugins"},
			{Host: "raw.githubusercontent.com", For: "announcements"},
		},
	},
	Cursor: { // https://cursor.com/docs/enterprise/network-configuration
		Write: []string{".config/cursor/auth.json"},
		Read:  []string{".cursor/cli-config.json", ".cursor/mcp.json", ".local/share/cursor-agent"},
		Hosts: []string{"*.cursor.sh"},
	},
	Gemini: { // https://github.com/google-gemini/gemini-cli, packages/core/src/code_assist; the second is the API of a key
		Write: []string{".gemini/oauth_creds.json", ".gemini/google_accounts.json"},
		Read:  []string{".gemini/settings.json", ".gemini/GEMINI.md", ".gemini/extensions", ".gemini/commands"},
		Hosts: []string{"cloudcode-pa.googleapis.com", "generativelanguage.googleapis.com", "oauth2.googleapis.com"},
		Unneeded: sandbox.UnneededHosts{ // https://geminicli.com/docs/reference/configuration, privacy.usageStatisticsEnabled; it has no variable
			{Host: "play.googleapis.com", For: "usage statistics"}, {Host: "registry.npmjs.org", For: "updates"},
		},
	},
	OpenCode: { // https://opencode.ai/docs/cli#auth, https://opencode.ai/docs/config; the host is that of its own provider
		Write: []string{".local/share/opencode/auth.json"},
		Read:  openCodeSettings,
		Hosts: []string{"opencode.ai"},
		Unneeded: sandbox.UnneededHosts{ // https://opencode.ai/docs/models, https://opencode.ai/docs/plugins
			{Host: "models.opencode.ai", For: "its list of models"}, {Host: "models.dev", For: "its list of models"},
			{Host: "registry.npmjs.org", For: "plugins, updates"}, {Host: "api.github.com", For: "updates, downloads of tools"},
			{Host: "github.com", For: "downloads of tools"},
		},
		Env: []string{ // https://opencode.ai/docs/cli#environment-variables
			"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1",
		},
	},
}

// SandboxNeedsOf returns what the program of a profile needs; nothing for another profile. A program
// that a host runs needs what it needs without one.
func SandboxNeedsOf(p Profile) SandboxNeeds {
	if program, ok := hostedPrograms[p]; ok {
		p = program
	}
	return sandboxNeeds[p]
}

// openCodeSettings are below .config/opencode. The directory itself isn't read-only: opencode 1.18.33
// writes .gitignore there, and ends if it can't.
var openCodeSettings = below(".config/opencode", "opencode.json", "opencode.jsonc", "config.json", "AGENTS.md",
	"agent", "agents", "command", "commands", "mode", "modes", "plugin", "plugins", "skill", "skills", "tool", "tools", "themes")

func below(dir string, names ...string) []string {
	paths := slices.Clone(names)
	for i, name := range names {
		paths[i] = dir + "/" + name
	}
	return paths
}

// withDefaults adds the variables that the environment of a run doesn't have.
func withDefaults(env, defaults []string) []string {
	for _, entry := range defaults {
		name, _, _ := strings.Cut(entry, "=")
		if !slices.ContainsFunc(env, func(own string) bool { return strings.HasPrefix(own, name+"=") }) {
			env = append(env, entry)
		}
	}
	return env
}
