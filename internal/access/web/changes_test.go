package web_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/decisions/task"
	"mailboxd/mailbox"
)

// needGit leaves a test out where git is missing, which .ci/run installs.
func needGit(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skipf("a worktree needs git: %v", err)
	}
}

func TestAnAnswerOfAWorktreeIsShownWithItsDifferenceBeforeItIsApproved(t *testing.T) {
	needGit(t)
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
		"You are asked to agree to exactly this", "4 files",
		`<bdi class="mono">&lt;b&gt;made</bdi>`, "+1 -0, new",
		`<span class="minus" data-n="1">- before</span>`, `<span class="plus" data-n="1">+ after &lt;img src=x&gt; \u202e</span>`,
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

func TestTheDifferenceIsBesideTheNumberAndThePasskey(t *testing.T) {
	needGit(t)
	t.Parallel()
	w := newWorld(t)
	w.addCoder()
	w.stop(w.daemon)
	w.serve()
	v := w.visit(w.open())
	w.sendTo("coder", "t1")
	w.state("t1", task.Review)
	const line = `<span class="minus" data-n="1">- before</span>`
	number := v.approve("t1")
	if _, text := v.get(number); !strings.Contains(text, "Type this number") || !strings.Contains(text, line) {
		t.Errorf("the page of the number has no difference: %s", text)
	}
	if asked := w.question(); !strings.Contains(asked, "changes  4 files, +4 -4: ") {
		t.Errorf("the terminal asks %q; want the changes in it", asked)
	}
	fmt.Fprintln(w.person, "no")
	w.until(func() bool { _, text := v.get(number); return strings.Contains(text, "Nothing was decided") })
	v.passkeyWithoutBrowser()
	path := v.approve("t1")
	_, text := v.get(path + "?diff=split")
	if !strings.Contains(text, "Use your passkey") || !strings.Contains(text, line) || !strings.Contains(text, "code split") {
		t.Errorf("the page of the passkey has no difference side by side: %s", text)
	}
	id := regexp.MustCompile(`id="(changes-\w+-split)" data-keep`).FindStringSubmatch(text)
	_, text = v.send(http.MethodGet, path+"?diff=split", nil, func(r *http.Request) { r.Header.Set("Kept", "output "+id[1]) })
	if strings.Contains(text, line) || !strings.Contains(text, id[0]) {
		t.Errorf("a browser that keeps the difference gets it again: %s", text)
	}
}

func TestADifferenceIsReadOnAnyScreen(t *testing.T) {
	b, w := browser(t), newWorld(t)
	needGit(t)
	w.addCoder()
	w.stop(w.daemon)
	w.serve()
	w.sendTo("coder", "t1")
	w.state("t1", task.Review)
	b.enter(w.open())
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(scheme)
		for width, beside := range map[int64]bool{390: false, 1920: true} {
			b.do(chromedp.EmulateViewport(width, 900))
			for _, path := range []string{"/tasks/t1", "/tasks/t1?diff=split"} {
				b.visit(path)
				b.sees("- before", "+ after")
				left := func(class string) float64 {
					return eval[float64](b, `document.querySelector(".pair .`+class+`").getBoundingClientRect().left`)
				}
				if got := left("minus") < left("plus"); got != (beside && strings.Contains(path, "split")) {
					t.Errorf("%s, %d pixels: before and after are beside each other: %t", path, width, got)
				}
				if eval[bool](b, `document.documentElement.scrollWidth > innerWidth`) {
					t.Errorf("%s, %d pixels: the page scrolls to the side", path, width)
				}
				b.passesAxe(path, scheme)
				b.keepPicture(fmt.Sprintf("diff-%d-%s%s", width, scheme, strings.TrimPrefix(path, "/tasks/t1")))
			}
		}
	}
	b.visit("/tasks/t1")
	b.do(chromedp.Click(`button[data-verb=approve]`))
	b.number()
	b.sees("- before", "+ after")
	b.until(`performance.getEntriesByType("resource").filter((e) => e.initiatorType === "xmlhttprequest").length > 1`) // it asks again each second
	b.sees("- before", "+ after")
	b.passesAxe("the number", "dark")
	b.keepPicture("diff-number")
}

// keepPicture saves a picture of the page for people, if they want any.
func (b *tab) keepPicture(name string) {
	b.t.Helper()
	if dir := os.Getenv("WEB_SCREENSHOTS"); dir != "" {
		b.picture(filepath.Join(dir, strings.NewReplacer("?", "-", "=", "-").Replace(name)+".png"))
	}
}

func TestThePageNamesApplyOnlyWhereItWorks(t *testing.T) {
	needGit(t)
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
	w.wantApply(v, "waits", false, "4 files")
	w.decide((*client.Client).Deny, "denied")
	w.wantApply(v, "denied", false, "4 files")
	w.decide((*client.Client).Approve, "idle")
	w.wantApply(v, "idle", false, "changed nothing")
	for _, id := range []envelope.ID{"unread", "branch", "taken"} {
		w.decide((*client.Client).Approve, id)
		w.wantApply(v, id, true, "4 files")
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

const someProgram = `// Package main greets.
package main

import "fmt"

// main prints a greeting a few times.
func main() {
	n := 3
	var unused int
	for i := range n {
		fmt.Println("hello", "world", i)
	}
	// it ends
	fmt.Printf("%d\\n", n)
}
`

// addCoder adds an agent that works in clones of a repository, and one that changes nothing there.
func (w *world) addCoder() {
	w.t.Helper()
	project, program := filepath.Join(w.dir, "project"), filepath.Join(w.dir, "coder.sh")
	for path, text := range map[string]string{
		filepath.Join(project, "main.txt"): "before\n",
		filepath.Join(project, "a.go"):     someProgram,
		program: "#!/bin/sh\nprintf 'after <img src=x> \u202e\\n' >main.txt\necho made >'<b>made'\n" +
			"sed -i -e 's/\"hello\"/\"good morning\"/' -e 's/n := 3/n := 4 \\/\\/ one more/' -e '/unused/d' a.go\nprintf 'a\\000b' >picture.bin\necho done\n",
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
