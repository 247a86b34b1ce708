package registry

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/operating/config"
)

// definitionOf writes a CAP agent definition, of which the members may be others.
func definitionOf(t *testing.T, id, allowed, overseer string) string {
	t.Helper()
	var names, rules []string
	for name := range strings.FieldsSeq(allowed) {
		names = append(names, fmt.Sprintf("%q", name))
		rules = append(rules, fmt.Sprintf(`%q: {"when_to_delegate": "when it is for %s"}`, name, name))
	}
	path := filepath.Join(t.TempDir(), id+".json")
	text := fmt.Sprintf(`{"id": %q, "system_prompt": "You work.", "allowed_agents": [%s], "delegate_rules": {%s}, "overseer": %s, "mcp_bindings": []}`,
		id, strings.Join(names, ","), strings.Join(rules, ","), overseer)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func entry(id, more string) string {
	return fmt.Sprintf("{id: %s, %s, exec: {command: [x]}}", id, more)
}

func TestWhatIsWrongWithADialogueIsNamedByItsKey(t *testing.T) {
	for yaml, want := range map[string]string{
		entry("a", "dialect: klingon"):                                                  `agents[0].dialect: "klingon" is not one of ainl, clowl, cap`,
		"{id: a, dialect: cap, worker: {command: [x]}}":                                 "agents[0].dialect: a worker speaks ainl",
		entry("a", "definition: none.json"):                                             "agents[0].definition: ",
		entry("a", "definition: "+definitionOf(t, "b", "", "null")):                     `id: is "b", and the agent is "a"`,
		entry("a", "definition: "+definitionOf(t, "a", "b a", "null")):                  "allowed_agents[1]: is the agent itself",
		entry("a", "definition: "+definitionOf(t, "a", "", `"a"`)):                      "overseer: is the agent itself",
		entry("a", "definition: "+definitionOf(t, "a", "", `7`)):                        "overseer: must be a string",
		entry("a", "replicas: 2, definition: "+definitionOf(t, "a", "", `"a-2"`)):       "overseer: is the agent itself, or another one like it",
		entry("a", "replicas: -1"):                                                      "agents[0].replicas: must be from 0 to 1000",
		entry("b", "concurrency: 1") + ", " + entry("a", "replicas: 5000"):              "agents[1].replicas: must be from 0 to 1000",
		"{id: a, replicas: 2, inbox: {file: agents/a.jsonl}}":                           "agents[0].inbox.file: each of the replicas needs a file of its own",
		entry("a", "on_error: [{do: retry}]"):                                           "agents[0].on_error[0].codes: required",
		entry("a", "on_error: [{codes: [504], do: pray}]"):                              `agents[0].on_error[0].do: "pray" is not one of retry, reassign, escalate`,
		entry("a", "on_error: [{codes: [504], do: retry}, {codes: [E999], do: retry}]"): `agents[0].on_error[1].codes[0]: "E999" is no code`,
		entry("a", "on_error: [{codes: [504], do: reassign}]"):                          "agents[0].on_error[0].to: required",
		entry("a", "on_error: [{codes: [504], do: reassign, to: a}]"):                   "agents[0].on_error[0].to: is the agent itself",
		entry("a", "on_error: [{codes: [504], do: retry, to: b}]"):                      "agents[0].on_error[0].to: is for reassign and escalate",
	} {
		if _, err := loadYAML(t, "agents: ["+yaml+"]"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("load(%s) = %v; want %q in it", yaml, err, want)
		}
	}
	for yaml, want := range map[string]string{
		"senders: [{secret_env: X}]":                                         `senders[0].name: required`,
		"senders: [{name: a}]":                                               "needs secret_env, secret_file, keys or token",
		"senders: [{name: a, secret_env: X, secret_file: y}]":                "needs secret_env or secret_file, one of them",
		"senders: [{name: a, secret_env: X}, {name: a, secret_env: X}]":      `senders[1].name: "a" is there twice`,
		"oversight: {rounds: -1}":                                            "oversight.rounds: must be at least 0",
		"conversation: {question_timeout: -1s}":                              "conversation.question_timeout: must be at least 0",
		"oversight: {patience: -1s}":                                         "oversight.patience: must be at least 0",
		"limits: {broadcast: 0}":                                             "limits.broadcast: must be at least 1",
		"limits: {queue_per_requester: -1}":                                  "limits.queue_per_requester: must be at least 0",
		"agents: [{id: a, on_error: [{code: [504]}], exec: {command: [x]}}]": "did you mean agents[].on_error[].codes?",
	} {
		if _, err := loadYAML(t, yaml); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("load(%s) = %v; want %q in it", yaml, err, want)
		}
	}
}

func TestReplicasAreAgentsOfTheirOwn(t *testing.T) {
	manifest := writeManifest(t, `{"schema_version":"1.0","agent_id":"analyst","role_types":["executor"]}`)
	yaml := "agents: [" + entry("pm", "concurrency: 1") + ", " +
		entry("analyst", "dialect: cap, replicas: 3, manifest: "+manifest+", definition: "+definitionOf(t, "analyst", "qa analyst-2", `"qa"`)) + "]"
	r := snapshotOf(t, yaml)
	if got, want := r.ids(), []string{"analyst-1", "analyst-2", "analyst-3", "pm"}; !slices.Equal(got, want) {
		t.Errorf("the agents are %q, want %q", got, want)
	}
	a, _ := r.agents.Lookup("analyst-2")
	if b := a.Binding(); b.Definition.ID != "analyst-2" || b.Manifest.AgentID != "analyst-2" || b.Dialect != envelope.CAP {
		t.Errorf("analyst-2 is %+v", b)
	}
	if words := mistakesOf(t, yaml); !strings.Contains(words, `agents[1]: definition: allowed_agents[0]: no agent "qa" is configured`) {
		t.Errorf("config check says %s", words)
	}
}

// registryOf is a registry with a configuration in force.
func registryOf(t *testing.T, yaml string) (*Registry, config.Config) {
	t.Helper()
	cfg, err := loadYAML(t, yaml)
	if err != nil {
		t.Fatal(err)
	}
	r := snapshotOf(t, yaml)
	if r.secrets, err = cfg.Secrets(); err != nil {
		t.Fatal(err)
	}
	reg := new(Registry)
	reg.current.Store(r)
	return reg, cfg
}

func TestTheEngineLearnsHowAgentsAreSpokenWith(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("open sesame\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OSCAR_TOKEN", "hush")
	reg, cfg := registryOf(t, "oversight: {rounds: 2, patience: 1h}\nlimits: {broadcast: 5}\n"+
		"senders: [{name: oscar, secret_env: OSCAR_TOKEN}, {name: radar, secret_file: "+file+"}]\nagents: ["+strings.Join([]string{
		entry("pm", "dialect: cap, definition: "+definitionOf(t, "pm", "analyst", "null")),
		entry("analyst", "dialect: clowl, task_types: [\"search*\", read], definition: "+definitionOf(t, "analyst", "", `"qa"`)),
		entry("qa", "on_error: [{codes: [E012], do: escalate}, {codes: [504, timeout], do: reassign, to: pm}, {codes: [E009], do: retry}]"),
	}, ", ")+"]")
	p := reg.protocol(cfg)
	for name, c := range map[string][2]any{
		"Dialect pm":          {p.Dialect("pm"), envelope.CAP},
		"Dialect analyst":     {p.Dialect("analyst"), envelope.CLowl},
		"Dialect qa":          {p.Dialect("qa"), envelope.AINL},
		"Dialect user":        {p.Dialect("user"), envelope.AINL},
		"Overseer analyst":    {p.Overseer("analyst"), "qa"},
		"Overseer pm":         {p.Overseer("pm"), ""},
		"Overseer nobody":     {p.Overseer("nobody"), ""},
		"pm to analyst":       {p.MayDelegate("pm", "analyst"), ""},
		"pm to qa":            {p.MayDelegate("pm", "qa"), "qa is not among the allowed_agents of pm"},
		"pm to pm":            {p.MayDelegate("pm", "pm"), "pm hands work to itself"},
		"analyst to overseer": {p.MayDelegate("analyst", "qa"), ""},
		"qa to pm":            {p.MayDelegate("qa", "pm"), ""},
		"rule of pm":          {p.Rule("pm", "analyst"), "when it is for analyst"},
		"rule of qa":          {p.Rule("qa", "analyst"), ""},
		"Secret oscar":        {p.Secret("oscar"), "hush"},
		"Secret radar":        {p.Secret("radar"), "open sesame"},
		"Secret ken":          {p.Secret("ken"), ""},
		"Supports analyst":    {fmt.Sprint(p.Supports("analyst")), "[search* read]"},
		"Supports pm":         {fmt.Sprint(p.Supports("pm")), "[*]"},
		"Supports nobody":     {fmt.Sprint(p.Supports("nobody")), "[]"},
		"Agents":              {fmt.Sprint(p.Agents()), "[analyst pm qa]"},
		"numbers":             {fmt.Sprint(p.Rounds, p.ReplyTimeout, p.Broadcast), "2 1h0m0s 5"},
		"OnFailure qa budget": {p.OnFailure("qa", envelope.BudgetExceeded), store.FailureAction{Escalate: "user"}},
		"OnFailure qa late":   {p.OnFailure("qa", envelope.OversightExpired), store.FailureAction{Reassign: "pm"}},
		"OnFailure qa crash":  {p.OnFailure("qa", envelope.AgentCrashed), store.FailureAction{Retry: true}},
		"OnFailure qa cycle":  {p.OnFailure("qa", envelope.DelegationCycle), store.FailureAction{}},
		"OnFailure nobody":    {p.OnFailure("nobody", envelope.Timeout), store.FailureAction{}},
	} {
		if c[0] != c[1] {
			t.Errorf("%s is %v, want %v", name, c[0], c[1])
		}
	}
	fields := reflect.ValueOf(p)
	for i := range fields.NumField() {
		if fields.Field(i).IsZero() {
			t.Errorf("the engine is not told %s", fields.Type().Field(i).Name)
		}
	}
}

func TestABroadcastReachesWhoTakesTheWork(t *testing.T) {
	reg, cfg := registryOf(t, "agents: ["+strings.Join([]string{
		entry("any", "concurrency: 1"), entry("said", "concurrency: 1"), entry("search", "task_types: [\"search*\"]"), entry("write", "task_types: [write]"),
		"{id: unfit, manifest: none.json, exec: {command: [x]}}",
	}, ", ")+"]")
	announced := map[string][]string{"said": {"search:web", "read"}, "write": {"search"}, "stranger": {"search"}}
	for taskType, want := range map[string]string{
		"search": "[any said search]", "read": "[any said]", "write": "[any]", "sea": "[any]", "search:web": "[any said search]", "draft": "[any]",
	} {
		if got := fmt.Sprint(reg.protocol(cfg).Takers(taskType, announced)); got != want {
			t.Errorf("%s is for %s, want %s", taskType, got, want)
		}
	}
}

func TestASecretThatIsNotThereIsSaid(t *testing.T) {
	for yaml, want := range map[string]string{
		"senders: [{name: a, secret_env: MAILBOXD_TEST_NO_SUCH}]": `MAILBOXD_TEST_NO_SUCH is not set`,
		"senders: [{name: a, secret_file: none}]":                 `none`,
		"senders: [{name: a, secret_file: /dev/null}]":            `is empty`,
	} {
		cfg, err := loadYAML(t, yaml)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cfg.Secrets(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", yaml, err, want)
		}
		if words := mistakesOf(t, yaml); !strings.Contains(words, "senders[0].secret_") || !strings.Contains(words, want) {
			t.Errorf("config check says %v; want %q", words, want)
		}
	}
}

// mistakesOf returns what config check says about a configuration.
func mistakesOf(t *testing.T, yaml string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := config.Examine(path, "")
	if err != nil {
		t.Fatal(err)
	}
	return found.Mistakes.Error()
}
