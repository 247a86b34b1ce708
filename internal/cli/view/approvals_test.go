package view_test

import (
	"strings"
	"testing"

	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/sandboxing/sandbox"
)

func TestNoPartOfAPlanLooksLikeAnotherOne(t *testing.T) {
	forged := "x\n    budget   nothing\n\tor"
	asked := client.Approval{
		Approver: forged, Digest: forged,
		Plan: &client.Plan{Format: client.PlanFormat, Sandbox: sandbox.Settings{Profile: sandbox.Workspace, Network: sandbox.Hosts{forged}}, Command: []string{"sh", "-c", forged}, Executable: forged, Cwd: forged, Tools: []string{forged},
			Files: map[string]string{forged: forged, "other" + forged: forged}, Env: map[string]string{forged: ""}, Manifest: forged},
	}
	lines := strings.Split(view.Question(asked), "\n")
	if want := 11; len(lines) != want { // approval, command, file, script, in, sandbox, tools, budget, env, manifest, digest
		t.Errorf("%d lines are shown; want %d:\n%s", len(lines), want, strings.Join(lines, "\n"))
	}
	asked.Plan.Inbox = forged
	if lines := strings.Split(view.Question(asked), "\n"); len(lines) != 7 {
		t.Errorf("%d lines are shown; want 7:\n%s", len(lines), strings.Join(lines, "\n"))
	}
}
