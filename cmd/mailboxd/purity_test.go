package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"
)

// every visits the commands that a person can see.
func every(cmd *cobra.Command, visit func(*cobra.Command)) {
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			visit(sub)
			every(sub, visit)
		}
	}
}

func TestEveryVerbHasAnExample(t *testing.T) {
	every(rootCommand(), func(cmd *cobra.Command) {
		switch {
		case cmd.Short == "" || strings.HasSuffix(cmd.Short, "."):
			t.Errorf("%s has the short description %q; want one without a full stop", cmd.CommandPath(), cmd.Short)
		case cmd.Runnable() && !strings.Contains(cmd.Example, cmd.CommandPath()):
			t.Errorf("%s has the example %q; want one of itself", cmd.CommandPath(), cmd.Example)
		}
		for line := range strings.SplitSeq(cmd.Example, "\n") {
			if cmd.Runnable() && !strings.HasPrefix(line, "  ") {
				t.Errorf("the example %q of %s is not indented", line, cmd.CommandPath())
			}
		}
	})
}

// pure are the verbs that print JSON when they are asked to, with arguments with
// which each does.
var pure = map[string][]string{
	"gateway token": {"acme"},
	"ps":            {"--all"},
	"show":          {"t1"},
	"result":        {"t1"},
	"wait":          {"t1", "t2"},
	"events":        nil,
	"agents":        nil,
	"lint":          {"FILE"},
	"send":          {"--agent", "worker", "--type", "work"},
	"ask":           {"worker", "do it", "--no-wait"},
	"gc":            {"--dry-run"},
	"doctor":        nil,
	"budget":        nil,
	"thread":        {"t1"},
	"trace":         {"t1"},
	"replay":        {"t1"},
	"again":         {"t1"},
	"stats":         nil,
	"backup":        {"COPY"},
	"reply":         {"t4", "well?"},
	"audit":         nil,
	"export":        {"t1", "-o", "BUNDLE.2"},
	"verify":        {"BUNDLE", "--key", "KEY"},

	"version": nil,

	"artifact ls":    nil,
	"service status": nil,
	"config check":   nil,
	"config show":    nil,
	"keys list":      nil,
}

// steering verbs print JSON too; scripts with a daemon show it.
var steering = []string{
	"cancel", "hold", "release", "retry", "pause", "resume", "drain", "approve", "deny",
	"agents test", "reload", "config diff", "apply", "discard", "edit", "restore", "route test", "route explain", "route replay",
	"runners", "runners drain", "runners resume", "runners remove",
}

func TestAskedForJSONEveryVerbPrintsNothingElse(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("AINL_AGENT_ROOT", filepath.Join(dir, "box"))
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	t.Setenv("XDG_CONFIG_HOME", dir)
	lines := taskLine("t1", "nobody", "") + "\n" + taskLine("t2", "nobody", "") + "\n" + taskLine("t3", "worker", "") + "\n" +
		taskLine("t4", "worker", `"approval_required":true`) + "\n"
	if err := os.MkdirAll(filepath.Join(dir, "box/tasks"), 0o700); err != nil {
		t.Fatal(err)
	}
	file, cfg := filepath.Join(dir, "box/tasks/a.jsonl"), filepath.Join(dir, "mailboxd/config.yaml")
	err := errors.Join(os.WriteFile(file, []byte(lines), 0o600), os.Mkdir(filepath.Dir(cfg), 0o700),
		os.WriteFile(cfg, []byte("policy: {budgets: [{agent: worker, per: day, tokens: 5}]}\nagents: [{id: worker, allow_unmetered: true, exec: {command: ['true'], output: text}}]"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := output("serve", "--once"); err != nil {
		t.Fatal(err)
	}
	bundle, key := filepath.Join(dir, "run.tar"), filepath.Join(dir, "owner.pub")
	public, err := output("keys", "export")
	_, exportErr := output("export", "t2", "-o", bundle)
	_, putErr := output("artifact", "put", file, "--sensitivity", "public")
	if err := errors.Join(err, exportErr, putErr, os.WriteFile(key, []byte(public), 0o600)); err != nil {
		t.Fatal(err)
	}
	every(rootCommand(), func(cmd *cobra.Command) {
		name := strings.TrimPrefix(cmd.CommandPath(), "mailboxd ")
		args, known := pure[name]
		switch {
		case cmd.Flags().Lookup("json") == nil || slices.Contains(steering, name):
			return
		case !known:
			t.Errorf("%s has --json and is not in the table of this test", name)
			return
		}
		args = slices.Clone(args)
		for i, arg := range args {
			args[i] = strings.NewReplacer("FILE", file, "COPY", filepath.Join(dir, "copy"), "BUNDLE", bundle, "KEY", key).Replace(arg)
		}
		out, _ := output(append(append(strings.Fields(name), "--json"), args...)...)
		for line := range strings.SplitSeq(strings.TrimSuffix(out, "\n"), "\n") {
			if value := jsontext.Value(line); !value.IsValid() || value.Kind() != '{' {
				t.Errorf("%s --json printed the line %q; want an object on each", name, line)
			}
		}
	})
}

// output runs the program as a shell would, and returns what is on its standard
// output.
func output(args ...string) (string, error) {
	var out bytes.Buffer
	cmd := rootCommand()
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	err := cmd.Execute()
	return out.String(), err
}
