package realagents_test

import (
	"slices"
	"strings"
	"testing"
)

// A program is one of the installed programs.
type program struct {
	name string // of the command, the profile and the agent

	// login writes the settings of a person whose model server is the box's, and returns the
	// variables of their environment.
	login func(*box) []string

	cents int64 // the price of 1,200 tokens in and 340 out; 0: it reports none
}

// all are the programs in testdata/package.json.
var all = []program{
	{name: "claude", cents: 2, login: func(b *box) []string {
		return []string{"ANTHROPIC_BASE_URL=" + b.model.URL(), "ANTHROPIC_API_KEY=sk-ant-fake"}
	}},
	{name: "codex", login: func(b *box) []string {
		b.write(".codex/config.toml", strings.ReplaceAll(`model = "gpt-5"
model_provider = "fake"
[model_providers.fake]
name = "fake"
base_url = "@URL@/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
`, "@URL@", b.model.URL()))
		return []string{"OPENAI_API_KEY=sk-fake"}
	}},
	{name: "gemini", login: func(b *box) []string {
		b.write(".gemini/settings.json", `{"security":{"auth":{"selectedType":"gemini-api-key"}}}`)
		return []string{"GEMINI_API_KEY=fake", "GOOGLE_GEMINI_BASE_URL=" + b.model.URL()}
	}},
	{name: "opencode", cents: 87, login: func(b *box) []string {
		b.write(".config/opencode/opencode.json", strings.ReplaceAll(`{
  "model": "fake/fake-model",
  "provider": {"fake": {
    "npm": "@ai-sdk/openai-compatible", "name": "Fake", "options": {"baseURL": "@URL@/v1", "apiKey": "sk-fake"},
    "models": {"fake-model": {
      "name": "Fake", "tool_call": true, "cost": {"input": 300, "output": 1500}, "limit": {"context": 200000, "output": 8000}
    }}
  }}
}`, "@URL@", b.model.URL()))
		return []string{"OPENCODE_CONFIG=" + b.home + "/.config/opencode/opencode.json"}
	}},
}

// named returns the program of a name.
func named(name string) program {
	return all[slices.IndexFunc(all, func(p program) bool { return p.name == name })]
}

// forEach runs a test with each program, beside others.
func forEach(t *testing.T, test func(t *testing.T, b *box)) {
	for _, p := range all {
		t.Run(p.name, func(t *testing.T) {
			needPrograms(t)
			t.Parallel()
			test(t, newBox(t, p))
		})
	}
}
