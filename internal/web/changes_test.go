package web_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/client"
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

func TestThePageNamesApplyOnlyWhereItWorks(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skipf("a worktree needs git: %v", err)
	}
	t.Parallel()
	w := newWorld(t)
	w.addCoder()
	w.stop(w.daemon)
	w.serve()
	v := w.visit(w.open())
	for id, agent := range map[string]string{"waits": "coder", "denied": "coder", "unread": "coder", "idle": "idler", "branch": "coder", "taken": "coder"} {
		w.sendTo(agent, id)
		w.state(envelope.ID(id), task.Review)
	}
	w.wantApply(v, "waits", false, "2 files")
	w.decide((*client.Client).Deny, "denied")
	w.wantApply(v, "denied", false, "2 files")
	w.decide((*client.Client).Approve, "idle")
	w.wantApply(v, "idle", false, "changed nothing")
	for _, id := range []envelope.ID{"unread", "branch", "taken"} {
		w.decide((*client.Client).Approve, id)
		w.wantApply(v, id, true, "2 files")
	}
	w.apply("branch", client.ApplyOptions{Branch: true})
	w.wantApply(v, "branch", false, "The work is in the branch")
	w.apply("taken", client.ApplyOptions{})
	w.wantApply(v, "taken", false, "The work was applied")
	found := w.details("unread")
	if err := os.Remove(found.Worktree().Patch); err != nil {
		t.Fatal(err)
	}
	w.wantApply(v, "unread", false, "no such file")
}

// wantApply checks whether the page of a task names the command that applies its work.
func (w *world) wantApply(v *visitor, id envelope.ID, named bool, words string) {
	w.t.Helper()
	_, text := v.get("/tasks/" + string(id))
	if got := strings.Contains(text, "mailboxd apply "+string(id)); got != named || !strings.Contains(text, words) {
		w.t.Errorf("the page of %s names mailboxd apply: %t, want %t and %q in it:\n%s", id, got, named, words, text)
	}
}

// decide decides about an answer, and waits for the end of its task.
func (w *world) decide(how func(*client.Client, context.Context, envelope.ID, client.Decision) (client.Task, error), id envelope.ID) {
	w.t.Helper()
	digest := w.details(id).Approvals[0].Digest
	w.do(func(daemon *client.Client) error {
		_, err := how(daemon, w.t.Context(), id, client.Decision{Note: "looked at it", Digest: digest})
		return err
	})
	w.state(id, task.Done)
}

// apply applies the work of a task.
func (w *world) apply(id envelope.ID, options client.ApplyOptions) {
	w.t.Helper()
	w.do(func(daemon *client.Client) error {
		_, err := daemon.Apply(w.t.Context(), id, options)
		return err
	})
}

// addCoder adds an agent that works in clones of a repository, and one that changes nothing there.
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
	for id, command := range map[string]string{"coder": program, "idler": "/bin/echo, done"} {
		appendTo(w.t, w.config, fmt.Sprintf("  - {id: %s, exec: {command: [%s], output: text, cwd: %s, worktree: true}}\n", id, command, project))
	}
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
