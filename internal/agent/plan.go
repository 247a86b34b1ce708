package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"os/exec"
	"path/filepath"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/client"
	"mailboxd/internal/task"
)

// PlanOf returns what an approval of a start covers.
func PlanOf(t envelope.Task, b Binding, terms task.Terms) client.Plan {
	p := client.Plan{Request: t.Hash, Command: b.Command, Cwd: b.Cwd, Tools: terms.Tools, Budget: terms.Budget, Sandbox: b.Sandbox}
	if b.Inbox != nil {
		p.Inbox = b.Inbox.File
	}
	p.Worktree = b.Worktree || t.Worktree()
	if b.Worker != nil {
		p.Command = b.Worker.Command
	}
	if len(p.Command) > 0 {
		p.Executable = executable(p.Command[0])
	}
	return p
}

// executable returns the file of a command, with links resolved.
func executable(command string) string {
	path, err := exec.LookPath(command)
	if err != nil {
		return ""
	}
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		return resolved
	}
	return path
}

// DigestOf identifies an encoded plan.
func DigestOf(plan jsontext.Value) string {
	sum := sha256.Sum256(plan)
	return hex.EncodeToString(sum[:])
}
