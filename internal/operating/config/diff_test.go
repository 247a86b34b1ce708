package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mailboxd/internal/operating/config"
)

// loadedOf reads a configuration with the files that it names.
func loadedOf(t *testing.T, yaml string) config.Loaded {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := config.LoadAll(path, "")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// differences lists the changes from one configuration to another.
func differences(was, is config.Loaded) string {
	var words []string
	for _, c := range was.Diff(is) {
		words = append(words, fmt.Sprintf("%s/%s %s %s %s %v", c.Agent, c.Key, c.Change, c.Was, c.Is, c.Restart))
	}
	return strings.Join(words, "\n")
}

func TestTwoConfigurationsAreCompared(t *testing.T) {
	t.Setenv("MAILBOXD_TEST_SECRET", "one")
	agent := func(id, rest string) string {
		return "{id: " + id + rest + ", exec: {command: [x], env: [KEY=secret]}}"
	}
	base := "agents: [" + agent("a", "") + "]"
	for _, c := range []struct{ name, was, is, want string }{
		{"the same", base, base, ""},
		{"a key of a reload", base, base + "\npolicy: {approval_ttl: 1h}", `/policy.approval_ttl changed "168h0m0s" "1h0m0s" false`},
		{"a key of a restart", base, base + "\nretention: {runs: 1h}", `/retention.runs changed "720h0m0s" "1h0m0s" true`},
		{"an entry of a list", base, base + "\napprovers: [{name: ann, uid: 7}]",
			"/approvers[0].name added null \"ann\" false\n/approvers[0].uid added null 7 false\n/approvers[0].proof added null \"\" false"},
		{"an added agent", base, "agents: [" + agent("a", "") + ", " + agent("b", "") + "]", "b/ added null null false"},
		{"no agent at all", base, "agents: []", "a/ removed null null false"},
		{"a changed agent", base, "agents: [" + agent("a", ", retries: 2") + "]", "a/retries changed 0 2 false"},
		{"replicas", base, "agents: [" + agent("a", ", replicas: 2") + "]", "a/replicas changed 0 2 false"},
		{"an inbox", base, "agents: [{id: a, inbox: {lease: 1h}}]",
			`a/exec.command changed ["x"] [] false` + "\n" + `a/exec.env changed ["KEY=***"] [] false` + "\n" + `a/inbox.file added null "" false` + "\n" + `a/inbox.lease added null "1h0m0s" false`},
		{"a secret of an environment", base, strings.ReplaceAll(base, "KEY=secret", "KEY=other"), "a/exec.env changed null null false"},
	} {
		if got := differences(loadedOf(t, c.was), loadedOf(t, c.is)); got != c.want {
			t.Errorf("%s:\n%s\nwant:\n%s", c.name, got, c.want)
		}
	}
	sender := base + "\nsenders: [{name: upstream, secret_env: MAILBOXD_TEST_SECRET}]"
	was := loadedOf(t, sender)
	t.Setenv("MAILBOXD_TEST_SECRET", "two")
	if got := differences(was, loadedOf(t, sender)); got != "/senders.upstream changed null null false" {
		t.Errorf("another secret: %s; want the change of its sender, without the secret", got)
	}
}

// What a reload leaves as it was is what needs a restart.
func TestAReloadLeavesExactlyWhatNeedsARestart(t *testing.T) {
	was := loadedOf(t, "agents: [{id: a, exec: {command: [x]}}]")
	next := loadedOf(t, `
limits: {concurrency: 2, depth: 9}
log: {level: debug}
intake: {rescan: 1m}
retention: {runs: 1h}
oversight: {rounds: 1}
notify: {waits: []}
stop_agents_on_exit: true
policy: {approval_ttl: 1h, deadline: warn}
approvers: [{name: ann, uid: 7}]
conversation: {question_timeout: 1m}
agents: [{id: b, exec: {command: [y]}}]
`)
	kept := 0
	for _, c := range was.Diff(next) {
		if c.Restart {
			kept++
		}
	}
	now := was.Reload(next)
	left := now.Diff(next)
	for _, c := range left {
		if !c.Restart {
			t.Errorf("after the reload %s%s still differs; want only what needs a restart", c.Agent, c.Key)
		}
	}
	if kept != 8 || len(left) != kept {
		t.Errorf("%d keys need a restart and %d differ after the reload; want 8 of both", kept, len(left))
	}
}
