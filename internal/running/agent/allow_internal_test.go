package agent

import (
	"testing"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/sandboxing/sandbox"
)

func TestWhatWouldAllowADeniedToolIsNamed(t *testing.T) {
	held := sandbox.Settings{Profile: sandbox.Workspace}
	const everywhere = ", in its manifest and in the request where they name tools"
	for _, c := range []struct {
		binding Binding
		tools   []string // of the task
		denied  []string
		want    string
	}{
		{Binding{Profile: Claude}, nil, []string{"Write"}, `set permission: edit of agent "a"`},
		{Binding{Profile: Claude, Sandbox: held}, nil, []string{"Bash"}, `set permission: edit of agent "a"`},
		{Binding{Profile: Codex}, nil, []string{"exec_command"}, `set permission: edit of agent "a"`},
		{Binding{Profile: Claude}, nil, []string{"Bash"}, `set permission: edit and tools: [read, edit, command] of agent "a"` + everywhere},
		{Binding{Profile: Gemini, Permission: Edit}, nil, []string{"run_shell_command"}, `set tools: [read, edit, command] of agent "a"` + everywhere},
		{Binding{Profile: Claude, Permission: ReadOnly}, []string{"read"}, []string{"Write"}, `set permission: edit and tools: [read, edit] of agent "a"` + everywhere},
		{Binding{Profile: Claude, Permission: ReadOnly}, nil, []string{"WebFetch"}, `set tools: [read, web] of agent "a"` + everywhere},
		{Binding{Profile: OpenCode, Permission: ReadOnly, Sandbox: sandbox.Settings{Profile: sandbox.ReadOnly}}, nil, []string{"write"},
			`set permission: edit and sandbox: {profile: workspace} of agent "a"`},
		{Binding{Profile: Claude, Command: []string{"claude", "-p"}}, nil, []string{"Write"}, ""},
		{Binding{Profile: Cursor}, nil, []string{"write"}, ""},
	} {
		c.binding.ID = "a"
		if got := c.binding.Filled().allow(task.Job{Terms: task.Terms{Tools: c.tools}}, c.denied); got != c.want {
			t.Errorf("for %q of %s, with the tools %q: %q; want %q", c.denied, c.binding.Profile, c.tools, got, c.want)
		}
	}
}
