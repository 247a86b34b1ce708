package config

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func load(t *testing.T, yaml string) (Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(path, "")
}

func TestTheExampleShowsEveryKeyWithItsDefault(t *testing.T) {
	t.Setenv("AINL_AGENT_ROOT", "")
	text, err := os.ReadFile("../../../config.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range knownKeys() {
		last := key[strings.LastIndexAny(key, ".")+1:]
		shown := `(?m)^[\s#-]*` + last + `:`
		if (strings.HasPrefix(key, "policy.") || strings.Contains(key, ".on_error")) && strings.HasSuffix(key, "[]."+last) {
			shown = `(?m)^ *#.*[{ ]` + last + `: ` // in the one row that a comment gives, for the default is none
		}
		if !regexp.MustCompile(shown).Match(text) {
			t.Errorf("config.example.yaml does not show %s", key)
		}
	}
	example, err := Load("../../../config.example.yaml", "")
	if err != nil {
		t.Fatal(err)
	}
	plain, err := load(t, "")
	if err != nil {
		t.Fatal(err)
	}
	entry := DefaultEntry()
	entry.ID, entry.Manifest = "openclaw.monitor", "examples/agents/openclaw.monitor.json"
	entry.Exec.Command, entry.Exec.Env = []string{"examples/agents/monitor.sh"}, []string{}
	entry.Exec.Workdirs = []string{}
	entry.Worker.Command, entry.Worker.Env = []string{}, []string{}
	entry.TaskTypes, entry.Environments, entry.OnError = []string{}, []string{}, []ErrorRule{}
	plain.Agents, plain.written = []Entry{entry}, []Entry{entry}
	plain.file, plain.dir = example.file, example.dir
	if diff := cmp.Diff(plain, example, cmp.AllowUnexported(Config{}, Entry{})); diff != "" {
		t.Errorf("config.example.yaml differs from the defaults (-code +example):\n%s", diff)
	}
}

func TestAnUnknownKeyIsNamedWithTheNearestOne(t *testing.T) {
	for yaml, want := range map[string]string{
		"limits: {concurency: 3}":                "limits.concurency: no such key; did you mean limits.concurrency?",
		"agents: [{id: a, exec: {comand: [x]}}]": "agents[0].exec.comand: no such key; did you mean agents[].exec.command?",
		"tiemout: 3m":                            "tiemout: no such key; did you mean agents[].timeout?",
		"limits: {max: 1}":                       "limits.max: no such key; mailboxd config show lists all keys",
		"rooot: /x":                              "rooot: no such key; did you mean root?",
		"polcy: {approval: enforce}":             "polcy: no such key; did you mean policy?",
		"polcy:":                                 "polcy: no such key; did you mean policy?",
		"polcy: {}":                              "polcy: no such key; did you mean policy?",
		"polcy: []":                              "polcy: no such key; did you mean policy?",
		"agent: [{id: a}]":                       "agent: no such key; did you mean agents?",
		"agent:":                                 "agent: no such key; did you mean agents?",
		"limits: {concurency: }":                 "limits.concurency: no such key; did you mean limits.concurrency?",
		"policy: {change_windw: {}}":             "policy.change_windw: no such key; did you mean policy.change_window?",
		"agents: [{id: a, exce: , exec: {command: [x]}}]":                  "agents[0].exce: no such key; did you mean agents[].exec?",
		"agents: [{id: a, inbox: {fil: x}}]":                               "agents[0].inbox.fil: no such key; did you mean agents[].inbox.file?",
		"policy: {sensitivty: warn}":                                       "policy.sensitivty: no such key; did you mean policy.sensitivity?",
		"policy: {refs: [warn]}":                                           "policy.refs: is one value, not a list or a section",
		"policy: {change_window: warn}":                                    "policy.change_window",
		"policy: {change_window: {mode: no}}":                              `policy.change_window.mode: "no" is not one of`,
		"policy: {context_divisor: 0}":                                     "policy.context_divisor: must be at least 1",
		"policy: {budgets: [{requester: \"*\"}]}":                          "policy.budgets[0]: needs tokens or usd_cents",
		"policy: {budgets: [{per: day, tokens: 1}]}":                       "policy.budgets[0]: needs requester or agent, one of them",
		"policy: {budgets: [{agent: x, per: day, tokens: 1}]}":             `policy.budgets[0].agent: no agent "x" is configured`,
		"policy: {budgets: [{agent: \"*\", per: week, tokens: 1}]}":        `policy.budgets[0].per: "week" is not one of day`,
		"policy: {budgets: [{agent: \"*\", per: day, tokens: -1}]}":        "policy.budgets[0].tokens: must be at least 0",
		"policy: {budgets: [{agent: \"*\", per: day, usd_cents: 1.5}]}":    "1.5 is not a whole number",
		"policy: {budget_classes: [{tokens: 1}]}":                          "policy.budget_classes[0].name",
		"policy: {budget_classes: [{name: a}, {name: a}]}":                 `policy.budget_classes[1].name: "a" is missing or there twice`,
		"policy: {budget_classes: [{name: a, wall: 5}]}":                   "5 has no unit: write 5s",
		"policy: {budget_classes: [{name: a, usd_cents: -1}]}":             "policy.budget_classes[0].usd_cents: must be at least 0",
		"policy: {trust: [{from: a}]}":                                     "policy.trust[0]: needs from and to",
		"policy: {trust: [{from: \"[\", to: b}]}":                          `policy.trust[0].from: "[" is not a pattern`,
		"agents: [{id: a, task_types: [\"[\"], exec: {command: [x]}}]":     `agents[0].task_types[0]: "[" is not a pattern`,
		"agents: [{id: a, max_sensitivity: secret, exec: {command: [x]}}]": `agents[0].max_sensitivity: "secret" is not one of`,
		"agents: [{id: a, refs: maybe, exec: {command: [x]}}]":             `agents[0].refs: "maybe" is not one of optional, required`,
		"agents: [{id: a, tools: [\"a,b\"], exec: {command: [x]}}]":        `agents[0].tools[0]: "a,b" is not the name of one tool`,
		"root: ~/mailbox":                 "root: ~/mailbox: only a shell understands ~",
		"policy: {schemas: ~/schemas}":    "policy.schemas: ",
		"state_dir: ~/m/s":                "state_dir: ",
		"limits: {concurrency: 0}":        "limits.concurrency: must be at least 1",
		"policy: {approval: perhaps}":     `policy.approval: "perhaps" is not one of enforce, warn, off`,
		"intake: {rescan: soon}":          "intake.rescan",
		"agents: [{id: a, timeout: 600}]": "600 has no unit: write 600s",
		"intake: {rescan: 1.5}":           "1.5 has no unit: write 1.5s",
		"intake: {rescan: \"30\"}":        "30 has no unit: write 30s",
		"limits: {concurrency: 4.7}":      "4.7 is not a whole number",
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
	if c, err = Load(path, "/from/flag"); err != nil || c.Root != "/from/flag" {
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

func TestReplicasAreOneEntryOfTheFile(t *testing.T) {
	c, err := load(t, "agents: [{id: a, exec: {command: [x]}}, {id: b, replicas: 3, exec: {command: [x]}}]")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range c.Settings(Origins{inFile: func(string) bool { return true }}) {
		if strings.HasPrefix(s.Key, "agents[2]") {
			t.Errorf("settings has %s, which is not in the file", s.Key)
		}
	}
}

// update rewrites the page of the keys.
var update = flag.Bool("update", false, "rewrite what the tests compare with")

func TestMain(m *testing.M) {
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); name == "AINL_AGENT_ROOT" || strings.HasPrefix(name, "MAILBOXD_") {
			os.Unsetenv(name) // the configuration of the person who runs the tests
		}
	}
	os.Exit(m.Run())
}
