package view_test

import (
	"strings"
	"testing"

	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/sandboxing/sandbox"
)

func TestAPlanSaysWhatItsSandboxLetsARunReach(t *testing.T) {
	home, link := sandbox.Path{Name: "/home/me/.tool", Real: "/home/me/.tool"}, sandbox.Path{Name: "/src", Real: "/data/src"}
	for _, test := range []struct {
		name string
		set  sandbox.Settings
		want string
	}{
		{"no sandbox", sandbox.Settings{}, "none: the run may do what the user of the daemon may"},
		{"without network", sandbox.Settings{Profile: sandbox.Offline}, "bubblewrap, profile offline; network: none"},
		{
			"all", sandbox.Settings{
				Profile: sandbox.Workspace, Network: sandbox.Hosts{"api.example.com", "b.example.com:80"},
				Home: []sandbox.Path{home}, Write: []sandbox.Path{link}, Read: []sandbox.Path{home}, Missing: sandbox.Weaker,
			},
			"bubblewrap, profile workspace; network: api.example.com, b.example.com:80; also writes: /home/me/.tool, /src (/data/src); " +
				"also reads: /home/me/.tool; without bubblewrap: Landlock, which holds less",
		},
		{
			"open", sandbox.Settings{Profile: sandbox.ReadOnly, Missing: sandbox.Open},
			"bubblewrap, profile read-only; network: none; without bubblewrap: no sandbox",
		},
	} {
		plan := client.Plan{Format: client.PlanFormat, Command: []string{"tool"}, Sandbox: test.set}
		if got := view.SandboxWords(plan); got != test.want {
			t.Errorf("%s: SandboxWords is %q; want %q", test.name, got, test.want)
		}
		if text := view.Question(client.Approval{Plan: &plan}); !strings.Contains(text, "\n    sandbox  "+test.want+"\n") {
			t.Errorf("%s: the question has no sandbox:\n%s", test.name, text)
		}
	}
	if got := view.SandboxWords(client.Plan{Command: []string{"tool"}}); got != "" {
		t.Errorf("a plan that covers no sandbox says %q", got)
	}
}
