package agent

// SandboxNeeds are what a known program needs in a sandbox, besides its own files. The paths
// are below the home directory; those that don't exist are left out.
type SandboxNeeds struct {
	Write []string // the login, which the program renews
	Read  []string // settings, instructions and hooks: the same program runs them outside of the sandbox
	Hosts []string // the default of the network list
}

// sandboxNeeds have their sources beside them.
var sandboxNeeds = map[Profile]SandboxNeeds{
	Claude: { // https://code.claude.com/docs/en/network-config, https://code.claude.com/docs/en/settings
		Write: []string{".claude/.credentials.json"},
		Read:  []string{".claude/settings.json", ".claude/CLAUDE.md", ".claude/agents", ".claude/commands", ".claude/skills", ".local/share/claude"},
		Hosts: []string{"api.anthropic.com", "platform.claude.com", "console.anthropic.com"},
	},
	Codex: { // https://developers.openai.com/codex/auth; chatgpt.com is the API of a login with ChatGPT
		Write: []string{".codex/auth.json"},
		Read:  []string{".codex/config.toml", ".codex/AGENTS.md", ".codex/prompts", ".codex/skills"},
		Hosts: []string{"api.openai.com", "chatgpt.com", "auth.openai.com"},
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
	},
	OpenCode: { // https://opencode.ai/docs/cli#auth, https://opencode.ai/docs/config; the host is that of its own provider
		Write: []string{".local/share/opencode/auth.json"},
		Read:  []string{".config/opencode"},
		Hosts: []string{"opencode.ai"},
	},
}

// SandboxNeedsOf returns what the program of a profile needs; nothing for another profile.
func SandboxNeedsOf(p Profile) SandboxNeeds { return sandboxNeeds[p] }
