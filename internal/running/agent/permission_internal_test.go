package agent

import (
	"strings"
	"testing"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/sandboxing/sandbox"
)

// Codex 0.169.0 makes a sandbox of its own. Without bubblewrap around it, nothing else holds it.
func TestCodexLeavesItsOwnSandboxOnlyWhereEachRunIsInBubblewrap(t *testing.T) {
	for _, c := range []struct {
		permission Permission
		tools      []string
		sandbox    sandbox.Settings
		mode       string
	}{
		{Edit, nil, sandbox.Settings{Profile: sandbox.Workspace}, "danger-full-access"},
		{Edit, nil, sandbox.Settings{Profile: sandbox.Workspace, Missing: sandbox.Refuse}, "danger-full-access"},
		{Edit, []string{EditTools, CommandTools}, sandbox.Settings{Profile: sandbox.Offline}, "danger-full-access"},
		{Edit, nil, sandbox.Settings{Profile: sandbox.Workspace, Missing: sandbox.Weaker}, "workspace-write"},
		{Edit, nil, sandbox.Settings{Profile: sandbox.Workspace, Missing: sandbox.Open}, "workspace-write"},
		{Edit, nil, sandbox.Settings{Profile: sandbox.None}, "workspace-write"},
		{Edit, nil, sandbox.Settings{}, "workspace-write"},
		{ReadOnly, nil, sandbox.Settings{Profile: sandbox.ReadOnly}, "read-only"},
		{Edit, []string{ReadTools}, sandbox.Settings{Profile: sandbox.Workspace}, "read-only"},
	} {
		b := Binding{ID: "a", Profile: Codex, Permission: c.permission, Sandbox: c.sandbox}.Filled()
		got := strings.Join(b.terms()(task.Job{Terms: task.Terms{Tools: c.tools}}), " ")
		if !strings.HasPrefix(got, "--sandbox "+c.mode+" ") {
			t.Errorf("Codex that may %s with tools %v in %+v has the flags %q; want the sandbox %s", c.permission, c.tools, c.sandbox, got, c.mode)
		}
		leaves := newTestAgent(t, b).leavesSandbox(task.Job{Terms: task.Terms{Tools: c.tools}})
		if want := c.mode == "danger-full-access"; leaves != want {
			t.Errorf("leavesSandbox of %s in %+v = %t; want %t", c.permission, c.sandbox, leaves, want)
		}
	}
}

func newTestAgent(t *testing.T, b Binding) *Agent {
	t.Helper()
	b.Command = append([]string{"/bin/true"}, b.Command[1:]...)
	g, err := newAgent(b, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}
