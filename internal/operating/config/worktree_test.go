package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mailboxd/internal/operating/config"
)

func withWorktree(t *testing.T, dir, value string, keys ...string) (config.Config, config.Origins, error) {
	t.Helper()
	path := filepath.Join(dir, "conf", "config.yaml")
	text := "root: DIR/box\nagents:\n- {id: a, exec: {command: [/bin/true], cwd: DIR/app, worktree: " + value + "}"
	text += strings.Join(keys, "") + "}\n"
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "DIR", dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	return config.Read(path, "")
}

func TestAWorktreeIsTrueFalseOrASection(t *testing.T) {
	dir := sandboxDir(t)
	for _, test := range []struct {
		value  string
		on     bool
		copied []string
		shown  string
	}{
		{"true", true, nil, "[exec.worktree=true]"},
		{"True", true, nil, "[exec.worktree=true]"},
		{"false", false, nil, "[exec.worktree=false]"},
		{"null", false, nil, "[exec.worktree=false]"},
		{"{}", true, nil, "[exec.worktree=true]"},
		{"{setup: null}", true, nil, "[exec.worktree=true]"},
		{
			"{setup: {command: [npm, ci]}}", true, nil,
			"[exec.worktree=true exec.worktree.setup.command=[npm ci]]",
		},
		{
			"{copy: [node_modules, conf/local]}", true, []string{"node_modules", "conf/local"},
			"[exec.worktree=true exec.worktree.copy=[node_modules conf/local]]",
		},
	} {
		c, from, err := withWorktree(t, dir, test.value)
		if err != nil {
			t.Errorf("worktree: %s: %v", test.value, err)
			continue
		}
		if b := c.ReadAgents()[0].Binding; b.Worktree != test.on || !slices.Equal(b.Copy, test.copied) {
			t.Errorf("worktree: %s: %v with copies of %q, want %v with %q", test.value, b.Worktree, b.Copy, test.on, test.copied)
		}
		var shown []string
		for _, s := range c.Settings(from) {
			if key, ok := strings.CutPrefix(s.Key, "agents[0]."); ok && strings.HasPrefix(key, "exec.worktree") {
				shown = append(shown, fmt.Sprint(key, "=", s.Value))
			}
		}
		if got := fmt.Sprint(shown); got != test.shown {
			t.Errorf("worktree: %s: config show has %s, want %s", test.value, got, test.shown)
		}
	}
}

func TestAMistakenWorktreeIsRefusedByItsKey(t *testing.T) {
	dir := sandboxDir(t)
	for value, want := range map[string]string{
		"maybe":                "agents[0].exec.worktree: is true, false, or a section such as {copy: [node_modules]}",
		"[node_modules]":       "agents[0].exec.worktree: is true, false, or a section",
		"{copies: [a]}":        "agents[0].exec.worktree.copies: no such key; did you mean agents[].exec.worktree.copy?",
		"{copy: [a, /etc]}":    `agents[0].exec.worktree.copy[1]: "/etc": write a path below the top of the repository`,
		"{copy: [a/../../b]}":  "agents[0].exec.worktree.copy[0]: ",
		"{copy: [.git/hooks]}": "a clone has a .git of its own",
		"{copy: {a: b}}":       "agents[0].exec.worktree.copy: is a list",
		"{setup: {}}":          "agents[0].exec.worktree.setup.command: required, a list such as [npm, ci]",
		"{setup: [npm, ci]}":   "agents[0].exec.worktree.setup: ",
		"{setup: {comand: x}}": "did you mean agents[].exec.worktree.setup.command?",
	} {
		if _, _, err := withWorktree(t, dir, value); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("worktree: %s: %v, want %s", value, err, want)
		}
	}
}

func TestTheHostsOfASetupNeedASandboxThatHoldsThem(t *testing.T) {
	dir := sandboxDir(t)
	for _, test := range []struct{ network, sandbox, want string }{
		{"[registry.example]", "{}", ""},
		{"[]", "{profile: offline}", ""},
		{"[registry.example]", "null", "agents[0].exec.worktree.setup.network: needs a sandbox"},
		{"[]", "{profile: none}", "agents[0].exec.worktree.setup.network: needs a sandbox"},
		{"[registry.example]", "{profile: offline}", "agents[0].exec.worktree.setup.network: the profile offline has no network"},
		{"[registry.example]", "{missing: weaker}", "agents[0].exec.worktree.setup.network: the weaker sandbox has no network"},
		{"['https://x']", "{}", "agents[0].exec.worktree.setup.network[0]: "},
		{"null", "{profile: read-only}", "agents[0].exec.worktree.setup: the sandbox profile read-only can't write the worktree"},
	} {
		_, _, err := withWorktree(t, dir, "{setup: {command: [/bin/true], network: "+test.network+"}}", ", sandbox: "+test.sandbox)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("network %s in the sandbox %s: %v; want %q", test.network, test.sandbox, err, test.want)
		}
	}
}
