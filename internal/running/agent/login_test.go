package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mailboxd/internal/running/agent"
)

func TestALoginIsFoundInVariablesThatRunsGetAndInDocumentedFiles(t *testing.T) {
	for name, c := range map[string]struct {
		binding       agent.Binding
		variable      string
		file, content string
		found, unsure string
	}{
		"none":                     {agent.Binding{Profile: agent.Claude}, "", "", "", "", ""},
		"a key that runs get":      {agent.Binding{Profile: agent.Claude, Env: []string{"ANTHROPIC_API_KEY"}}, "ANTHROPIC_API_KEY=x", "", "", "ANTHROPIC_API_KEY", ""},
		"a key that runs don't":    {agent.Binding{Profile: agent.Claude}, "ANTHROPIC_API_KEY=x", "", "", "", ""},
		"the file of claude":       {agent.Binding{Profile: agent.Claude}, "", ".claude/.credentials.json", "{}", ".claude/.credentials.json", ""},
		"a directory of its own":   {agent.Binding{Profile: agent.Codex, Env: []string{"CODEX_HOME=@HOME@/c"}}, "", "c/auth.json", "{}", "c/auth.json", ""},
		"an empty file":            {agent.Binding{Profile: agent.Codex}, "", ".codex/auth.json", "", "", ""},
		"a provider of codex":      {agent.Binding{Profile: agent.Codex}, "", ".codex/config.toml", "model_provider = \"x\"", "", ".codex/config.toml"},
		"settings without one":     {agent.Binding{Profile: agent.Codex}, "", ".codex/config.toml", "model = \"x\"", "", ""},
		"the file of gemini":       {agent.Binding{Profile: agent.Gemini}, "", ".gemini/oauth_creds.json", "{}", ".gemini/oauth_creds.json", ""},
		"an empty one of opencode": {agent.Binding{Profile: agent.OpenCode}, "", ".local/share/opencode/auth.json", "{}", "", ""},
		"the file of opencode":     {agent.Binding{Profile: agent.OpenCode}, "", ".local/share/opencode/auth.json", `{"x":{"type":"api"}}`, ".local/share/opencode/auth.json", ""},
	} {
		home := t.TempDir()
		for _, variable := range []string{"ANTHROPIC_API_KEY", "CODEX_API_KEY", "CODEX_HOME", "GEMINI_API_KEY"} {
			t.Setenv(variable, "")
		}
		t.Setenv("HOME", home)
		if key, value, ok := strings.Cut(c.variable, "="); ok {
			t.Setenv(key, value)
		}
		for i, entry := range c.binding.Env {
			c.binding.Env[i] = strings.Replace(entry, "@HOME@", home, 1)
		}
		if c.file != "" {
			path := filepath.Join(home, c.file)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, known := c.binding.Filled().Login()
		found, unsure := strings.TrimPrefix(got.Found, home+"/"), strings.TrimPrefix(got.Unsure, home+"/")
		if !known || found != c.found || unsure != c.unsure || got.Remedy == "" {
			t.Errorf("%s: login %+v, known %v; want it found in %q, unsure by %q", name, got, known, c.found, c.unsure)
		}
	}
	if _, known := (agent.Binding{Profile: agent.Shell}).Login(); known {
		t.Error("the login of a script is known; want it unknown")
	}
}

func TestAnotherMajorVersionIsUntested(t *testing.T) {
	for says, want := range map[string]string{
		"/x/claude: 2.1.197 (Claude Code)": "", "/x/claude: 2.9.0": "", "/x/claude: 3.0.1 (Claude Code)": "2.1", "/x/codex: codex-cli 1.0.0": "0.169",
		"/x/gemini: 0.61.0": "", "/x/opencode: 2.0.0": "1.18", "/x/other: 9.9": "", "/x/claude: unknown": "",
	} {
		path, version, _ := strings.Cut(says, ": ")
		if got := agent.UntestedVersion(path, version); got != want {
			t.Errorf("%s: tested with %q; want %q", says, got, want)
		}
	}
}
