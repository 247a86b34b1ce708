package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/decisions/task"
	"mailboxd/mailbox"
)

// revise appends a task for the deployer, or another revision of it.
func (w *world) revise(id, description string) {
	w.t.Helper()
	line := fmt.Sprintf(`{"schema_version": "1.0", "task_id": %q, "requester_id": "eve", "target_agent": "deployer", `+
		`"target_role": "executor", "task_type": "work", "description": %q, "input": {"refs": [], "payload": {"seconds": 0}}}`, id, description)
	if _, _, err := mailbox.Append(w.at.Root, []byte(line)); err != nil {
		w.t.Fatal(err)
	}
}

// revision waits until a revision of a task is asked about, and returns the digest of the question.
func (w *world) revision(id envelope.ID, n int) (digest string) {
	w.t.Helper()
	w.until(func() bool {
		found := w.details(id)
		last := len(found.Approvals) - 1
		if last < 0 || found.Approvals[last].Revision != n || found.Approvals[last].Decision != "" {
			return false
		}
		digest = found.Approvals[last].Digest
		return true
	})
	return digest
}

func TestARevisionThatArrivesBetweenLookAndApproveIsRefusedAndShown(t *testing.T) {
	b, w := browser(t), newWorld(t)
	w.revise("t1", "tidy the logs")
	w.state("t1", task.Held)
	seen := w.revision("t1", 1)
	v := w.visit(w.open())
	fmt.Fprintln(w.person)
	b.enter(w.link())
	b.visit("/tasks/t1")
	b.sees("tidy the logs")
	eval[bool](b, `(window.EventSource = class { close() {} addEventListener() {} }, `+
		`window.XMLHttpRequest = class { open() {} send() {} setRequestHeader() {} }, true)`) // the page stays as the person saw it
	w.revise("t1", "remove the logs")
	w.revision("t1", 2)
	for _, verb := range []string{"approve", "deny"} {
		status, text := v.post("/tasks/t1/"+verb, url.Values{"token": {v.token}, "digest": {seen}, "note": {"x"}})
		for _, want := range []string{
			"It has changed", "Nothing was decided", "tidy the logs&#34; -&gt; &#34;remove the logs",
			`<span class="minus">-   &#34;description&#34;: &#34;tidy the logs`,
			`<span class="plus">&#43;   &#34;description&#34;: &#34;remove the logs`,
		} {
			if status != http.StatusConflict || !strings.Contains(text, want) {
				t.Errorf("%s of what was shown before = %d, %s; want 409, and %q", verb, status, text, want)
			}
		}
	}
	b.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`{
		const form = document.querySelector("form[action$='/approve']");
		form.elements.digest.value = %q; form.submit();
	}`, seen))) // as the button does; the click may come after the page was refreshed
	b.sees("It has changed", "tidy the logs", "remove the logs", "Look at it again")
	b.passesAxe("changed", "light")
	b.keepPicture("changed")
	if w.details("t1").Task.State != task.Held || strings.Contains(w.shown(), "to confirm") {
		t.Errorf("the task moved, or the terminal asked: %q", w.shown())
	}
}

// addFickle adds an agent whose every run fails and leaves another patch.
func (w *world) addFickle() {
	w.t.Helper()
	script := filepath.Join(w.dir, "fickle.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho run $$ '<script>x</script>' >main.txt\nexit 1\n"), 0o755); err != nil {
		w.t.Fatal(err)
	}
	appendTo(w.t, w.config, fmt.Sprintf("  - {id: fickle, exec: {command: [%s], output: text, cwd: %s, worktree: true}}\n",
		script, filepath.Join(w.dir, "project")))
}

func TestAPatchThatChangesBetweenLookAndApplyIsRefusedAndShown(t *testing.T) {
	t.Parallel()
	w, v := withCoder(t)
	w.addFickle()
	w.stop(w.daemon)
	w.serve()
	line := `{"schema_version": "1.0", "task_id": "t1", "requester_id": "eve", "target_agent": "fickle", ` +
		`"target_role": "executor", "task_type": "edit", "description": "edit it", "input": {"refs": [], "payload": {}}}`
	if _, _, err := mailbox.Append(w.at.Root, []byte(line)); err != nil {
		t.Fatal(err)
	}
	w.result("t1")
	seen := v.workForm("t1")
	path, number := v.beginWork("apply", "t1") // and it changes before the number is typed
	w.question()
	w.do(func(daemon *client.Client) error {
		_, err := daemon.Retry(t.Context(), "t1", client.ControlOptions{})
		return err
	})
	w.until(func() bool {
		found := w.details("t1")
		return found.Task.State == task.Done && found.PatchShown() != seen.Get("digest")
	})
	fmt.Fprintln(w.person, number)
	w.until(func() bool { _, text := v.get(path); return strings.Contains(text, "is another one than was shown") })
	for _, verb := range []string{"apply", "discard"} {
		status, text := v.post("/tasks/t1/"+verb, seen)
		for _, want := range []string{
			"It has changed", "The patch is another one", "a/main.txt b/main.txt",
			`<span class="minus">- &#43;run `, `<span class="plus">&#43; &#43;run `, "&lt;script&gt;x",
		} {
			if status != http.StatusConflict || !strings.Contains(text, want) || strings.Contains(text, "<script>x") {
				t.Errorf("%s of the earlier patch = %d, %s; want 409, and %q", verb, status, text, want)
			}
		}
	}
	if got := w.file("main.txt"); got != "before\n" {
		t.Errorf("main.txt is %q; want that nothing was applied", got)
	}
}

func TestADifferenceThatCannotBeShownIsNeitherAppliedNorApproved(t *testing.T) {
	t.Parallel()
	w, v := withCoder(t)
	w.sendTo("coder", "waits")
	w.finished("coder", "t1")
	w.state("waits", task.Review)
	for _, id := range []envelope.ID{"t1", "waits"} {
		found := w.details(id)
		if err := os.WriteFile(found.Worktree().Patch, []byte("diff --git a/main.txt b/main.txt\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if status, text := v.post("/tasks/t1/apply", v.workForm("t1")); status != http.StatusConflict || !strings.Contains(text, "be shown") {
		t.Errorf("apply = %d, %s; want 409", status, text)
	}
	form := url.Values{"token": {v.token}, "digest": {w.details("waits").Approvals[0].Digest}}
	if status, text := v.post("/tasks/waits/approve", form); status != http.StatusConflict || !strings.Contains(text, "be shown") {
		t.Errorf("approve = %d, %s; want 409", status, text)
	}
	w.do(func(daemon *client.Client) error { // another patch than that of the answer
		_, err := daemon.Approve(t.Context(), "waits", client.Decision{Digest: form.Get("digest"), Patch: "00"})
		if err == nil || !strings.Contains(err.Error(), "the patch is another one than was shown") {
			t.Errorf("approve with another patch: %v; want a refusal", err)
		}
		return nil
	})
}
