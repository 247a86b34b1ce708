package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mailboxd/envelope"
)

func runnerFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "runner.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTheConfigurationOfARunnerIsRead(t *testing.T) {
	path := runnerFile(t, `
name: gpu-1
capabilities: [gpu]
max_sensitivity: confidential
state: state
agents:
  - id: trainer
    max_sensitivity: restricted
    exec: {command: [./train], worktree: true}
  - id: plain
    exec: {command: [train]}
`)
	c, err := LoadRunner(path)
	if err != nil {
		t.Fatal(err)
	}
	b := c.Bindings()
	dir := filepath.Dir(path)
	if c.Slots != 4 || c.State != filepath.Join(dir, "state") || len(b) != 2 ||
		b[0].Command[0] != filepath.Join(dir, "train") || !b[0].Worktree || !b[0].Commits {
		t.Errorf("read %+v with %+v", c, b)
	}
	if c.MostSensitive("trainer") != envelope.Confidential || c.MostSensitive("plain") != envelope.Internal {
		t.Errorf("most sensitive: %v and %v; want the smaller one of runner and agent", c.MostSensitive("trainer"), c.MostSensitive("plain"))
	}
}

func TestAMistakeInTheConfigurationOfARunnerNamesItsField(t *testing.T) {
	const agents = "\nagents: [{id: a, exec: {command: [a]}}]\n"
	for text, want := range map[string]string{
		"slots: 0" + agents:                                    "runner.yaml:1:8: slots: must be at least 1",
		"name: Gpu" + agents:                                   "name: \"Gpu\" is no name",
		"capabilities: [a b]" + agents:                         "capabilities[0]: \"a b\" is not one word",
		"max_sensitivity: secret" + agents:                     "max_sensitivity: \"secret\" is not one of",
		"state: ~/x" + agents:                                  "state: ~/x: only a shell understands ~",
		"slot: 3" + agents:                                     "slot: no such key; did you mean slots?",
		"capabilites: [gpu]" + agents:                          "capabilites: no such key; did you mean capabilities?",
		"policy: {}" + agents:                                  "policy: no such key; docs/runners.md lists all keys",
		"name: a":                                              "agents: required",
		"agents: [{id: a}]":                                    "agents[0].exec.command: required",
		"agents: [{id: a, inbox: {}}]":                         "agents[0].inbox: a runner has only agents with exec.command",
		"agents: [{id: a, remote: {}}]":                        "agents[0].remote: a runner has only agents with exec.command",
		"agents: [{id: a, manifest: m, exec: {command: [a]}}]": "agents[0].manifest: is for the configuration of the daemon",
		"agents: [{id: a, exec: {command: [a]}}, {id: a, exec: {command: [b]}}]": "claimed by 2 entries",
		"agents: [{id: a, exec: {command: [a], worktree: {copy: [/x]}}}]":        "agents[0].exec.worktree.copy[0]",
		"agents: [{id: a, exec: {command: [a]}, sandbox: {profile: workspce}}]":  "agents[0].sandbox.profile",
	} {
		if _, err := LoadRunner(runnerFile(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
	_, err := LoadRunner(runnerFile(t, agents+"  - id: ["))
	if err == nil || !strings.Contains(err.Error(), "not YAML") || strings.Contains(err.Error(), "required") {
		t.Errorf("a text that is not YAML: %v; want only that", err)
	}
	if _, err := LoadRunner(filepath.Join(t.TempDir(), "none.yaml")); err == nil || !strings.Contains(err.Error(), "--config") {
		t.Errorf("a missing file: %v; want the next step", err)
	}
}
