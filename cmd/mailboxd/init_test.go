package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mailboxd/internal/operating/config"
	"mailboxd/internal/operating/setup"
	"mailboxd/internal/running/agent"
)

// agentsOf reads a configuration as serve does, agents and all.
func agentsOf(t *testing.T, file string) *agent.Agents {
	t.Helper()
	cfg, err := config.Load(file, "")
	if err != nil {
		t.Fatal(err)
	}
	members := cfg.ReadAgents()
	for _, m := range members {
		if err := m.Problem(); err != nil {
			t.Fatal(err)
		}
	}
	agents, err := agent.New(config.Bindings(members), agent.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return agents
}

// everyCLI puts a program of each name that init knows on PATH.
func everyCLI(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range setup.KnownCLIs() {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	t.Setenv("AINL_AGENT_ROOT", "")
	t.Chdir(dir)
}

func TestWhatInitWritesLoadsWithEveryProgramFound(t *testing.T) {
	everyCLI(t)
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := setup.Init(t.Context(), &strings.Builder{}, setup.InitOptions{File: config, Root: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(agentsOf(t, config).IDs(), " "), "claude codex cursor-agent gemini hello opencode"; got != want {
		t.Errorf("agents %s; want %s", got, want)
	}
}

func TestWhatInitCommentsOutLoadsOnceItIsNot(t *testing.T) {
	everyCLI(t)
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := setup.Init(t.Context(), &strings.Builder{}, setup.InitOptions{File: config, Root: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "  # - ") || strings.HasPrefix(line, "  #   ") {
			lines[i] = "  " + line[len("  # "):]
		}
	}
	if err := os.WriteFile(config, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := agentsOf(t, config).IDs(); len(got) != len(setup.KnownCLIs())+1 {
		t.Errorf("agents %v; want hello and all %d programs", got, len(setup.KnownCLIs()))
	}
}
