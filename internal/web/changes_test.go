package web_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mailboxd/internal/task"
	"mailboxd/mailbox"
)

func TestAnAnswerOfAWorktreeIsShownWithItsDifferenceBeforeItIsApproved(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skipf("a worktree needs git: %v", err)
	}
	t.Parallel()
	w := newWorld(t)
	w.addCoder()
	w.stop(w.daemon)
	w.serve()
	v := w.visit(w.open())
	w.sendTo("coder", "t1")
	w.state("t1", task.Review)
	status, text := v.get("/tasks/t1")
	if status != http.StatusOK {
		t.Fatalf("GET /tasks/t1 = %d, %s", status, text)
	}
	for _, want := range []string{
		"You are asked to agree to exactly this", "2 files",
		`<bdi class="mono">&lt;b&gt;made</bdi>`, "+1 -0, new",
		`<span class="minus">- before</span>`, `<span class="plus">&#43; after &lt;img src=x&gt; \u202e</span>`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page of t1 has no %q: %s", want, text)
		}
	}
	for _, raw := range []string{"<img", "<b>made", "\u202e"} {
		if strings.Contains(text, raw) {
			t.Errorf("the page of t1 has %q", raw)
		}
	}
}

// addCoder adds an agent that works in clones of a repository.
func (w *world) addCoder() {
	w.t.Helper()
	project, program := filepath.Join(w.dir, "project"), filepath.Join(w.dir, "coder.sh")
	for path, text := range map[string]string{
		filepath.Join(project, "main.txt"): "before\n",
		program:                            "#!/bin/sh\nprintf 'after <img src=x> \u202e\\n' >main.txt\necho made >'<b>made'\necho done\n",
	} {
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = os.WriteFile(path, []byte(text), 0o755)
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "start"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = project, w.env
		if out, err := cmd.CombinedOutput(); err != nil {
			w.t.Fatalf("git %q: %v: %s", args, err, out)
		}
	}
	appendTo(w.t, w.config, fmt.Sprintf("  - {id: coder, exec: {command: [%s], output: text, cwd: %s, worktree: true}}\n", program, project))
}

// sendTo sends a task whose answer a person has to approve.
func (w *world) sendTo(agent, id string) {
	w.t.Helper()
	const line = `{"schema_version": "1.0", "task_id": %q, "requester_id": "eve", "target_agent": %q, "target_role": "executor",
		"task_type": "edit", "description": "edit it", "input": {"refs": [], "payload": {}}, "approval_required": "post"}`
	if _, _, err := mailbox.Append(w.at.Root, []byte(strings.ReplaceAll(fmt.Sprintf(line, id, agent), "\n", " "))); err != nil {
		w.t.Fatal(err)
	}
}
