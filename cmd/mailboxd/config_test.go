package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func load(t *testing.T, yaml string) (config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	return loadConfig(path, "")
}

func TestTheExampleShowsEveryKeyWithItsDefault(t *testing.T) {
	t.Setenv("AINL_AGENT_ROOT", "")
	text, err := os.ReadFile("../../config.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range knownKeys() {
		last := key[strings.LastIndexAny(key, ".")+1:]
		if !regexp.MustCompile(`(?m)^[\s#-]*` + last + `:`).Match(text) {
			t.Errorf("config.example.yaml does not show %s", key)
		}
	}
	example, err := loadConfig("../../config.example.yaml", "")
	if err != nil {
		t.Fatal(err)
	}
	plain, err := load(t, "")
	if err != nil {
		t.Fatal(err)
	}
	entry := agentDefaults()
	entry.ID, entry.Manifest = "openclaw.monitor", "examples/agents/openclaw.monitor.json"
	entry.Exec.Command, entry.Exec.Env = []string{"examples/agents/monitor.sh"}, []string{}
	entry.Worker.Command, entry.Worker.Env = []string{}, []string{}
	plain.Agents, plain.dir = []agentEntry{entry}, example.dir
	if diff := cmp.Diff(plain, example, cmp.AllowUnexported(config{})); diff != "" {
		t.Errorf("config.example.yaml differs from the defaults (-code +example):\n%s", diff)
	}
}

func TestAnUnknownKeyIsNamedWithTheNearestOne(t *testing.T) {
	for yaml, want := range map[string]string{
		"limits: {concurency: 3}":                 "limits.concurency: no such key; did you mean limits.concurrency?",
		"agents: [{id: a, exec: {comand: [x]}}]":  "agents[0].exec.comand: no such key; did you mean agents[].exec.command?",
		"rooot: /x":                               "rooot: no such key; did you mean root?",
		"agents: [{id: a, inbox: {file: x}}]":     "agents[0].inbox: pull agents are not served yet",
		"policy: {budgets: [{requester: \"*\"}]}": "policy.budgets: day budgets are not kept yet",
		"root: ~/mailbox":                         `root: "`,
		"state_dir: ~/m/s":                        "state_dir: ",
		"policy: {schemas: ~/schemas}":            "policy.schemas: ",
		"limits: {concurrency: 0}":                "limits.concurrency: must be at least 1",
		"policy: {approval: perhaps}":             `policy.approval: "perhaps" is not one of enforce, warn, off`,
		"intake: {rescan: soon}":                  "intake.rescan",
		"agents: [{id: a, timeout: 600}]":         "600 has no unit: write 600s",
		"intake: {rescan: 1.5}":                   "1.5 has no unit: write 1.5s",
		"intake: {rescan: \"30\"}":                "30 has no unit: write 30s",
		"limits: {concurrency: 4.7}":              "4.7 is not a whole number",
	} {
		_, err := load(t, yaml)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("load(%s) = %v; want %q in it", yaml, err, want)
		}
	}
}

func TestFlagBeatsEnvironmentBeatsFileBeatsDefault(t *testing.T) {
	t.Setenv("AINL_AGENT_ROOT", "")
	c, err := load(t, "root: /from/file\nlimits: {concurrency: 2}\n")
	if err != nil || c.Root != "/from/file" || c.Limits.Concurrency != 2 {
		t.Fatalf("file: root %s, concurrency %d, %v; want /from/file, 2", c.Root, c.Limits.Concurrency, err)
	}
	t.Setenv("AINL_AGENT_ROOT", "/from/environment")
	t.Setenv("MAILBOXD_LIMITS_CONCURRENCY", "7")
	t.Setenv("MAILBOXD_INTAKE_RESCAN", "3s")
	c, err = load(t, "root: /from/file\nlimits: {concurrency: 2}\n")
	if err != nil || c.Root != "/from/environment" || c.Limits.Concurrency != 7 || c.Intake.Rescan != 3*time.Second {
		t.Fatalf("environment: root %s, concurrency %d, rescan %s, %v; want /from/environment, 7, 3s", c.Root, c.Limits.Concurrency, c.Intake.Rescan, err)
	}
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte("root: /from/file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err = loadConfig(path, "/from/flag"); err != nil || c.Root != "/from/flag" {
		t.Fatalf("flag: root %s, %v; want /from/flag", c.Root, err)
	}
}

func TestADurationInTheEnvironmentNeedsItsUnitToo(t *testing.T) {
	t.Setenv("MAILBOXD_INTAKE_RESCAN", "30")
	if _, err := load(t, ""); err == nil || !strings.Contains(err.Error(), "write 30s") {
		t.Errorf("rescan 30 = %v; want an error that says to write 30s", err)
	}
	t.Setenv("MAILBOXD_INTAKE_RESCAN", "")
	if c, err := load(t, "limits: {shutdown_grace: 0}"); err != nil || c.Limits.ShutdownGrace != 0 {
		t.Errorf("shutdown_grace 0 = %s, %v; want 0 without a unit", c.Limits.ShutdownGrace, err)
	}
}

func TestAZeroInTheFileMeansZero(t *testing.T) {
	c, err := load(t, "agents: [{id: A.b, timeout: 0s, exec: {command: [x]}}]")
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Agents[0]; got.Timeout != 0 || got.Concurrency != 1 || got.ID != "A.b" || got.Exec.Output != "envelope" {
		t.Errorf("agent = %+v; want timeout 0, the other defaults, and its id in its own case", got)
	}
}

func TestPathsInTheFileStartWhereTheFileIs(t *testing.T) {
	t.Setenv("AINL_AGENT_ROOT", "")
	c, err := load(t, "root: box\nstate_dir: private\n")
	if err != nil {
		t.Fatal(err)
	}
	if c.Root != filepath.Join(c.dir, "box") || c.StateDir != filepath.Join(c.dir, "private") {
		t.Errorf("root %s, state_dir %s; want both in %s", c.Root, c.StateDir, c.dir)
	}
}
