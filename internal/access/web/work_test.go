package web_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/decisions/task"
	"mailboxd/mailbox"
)

// withCoder is a mailbox with the agents of addCoder, and its page.
func withCoder(t *testing.T) (*world, *visitor) {
	t.Helper()
	needGit(t)
	w := newWorld(t)
	w.addCoder()
	w.stop(w.daemon)
	w.serve()
	return w, w.visit(w.open())
}

// finished has a task of an agent whose answer was approved.
func (w *world) finished(agent, id string) {
	w.t.Helper()
	w.sendTo(agent, id)
	w.state(envelope.ID(id), task.Review)
	w.decide((*client.Client).Approve, envelope.ID(id))
}

// workForm is the form that decides about the work of a task as it is now.
func (v *visitor) workForm(id envelope.ID) url.Values {
	found := v.w.details(id)
	return url.Values{"token": {v.token}, "digest": {found.Worktree().Digest}}
}

var numberPattern = regexp.MustCompile(`class="number">(\d\d)<`)

// beginWork posts a decision about the work of a task, and returns its path and number.
func (v *visitor) beginWork(verb string, id envelope.ID) (path, number string) {
	v.w.t.Helper()
	_, text := v.post("/tasks/"+string(id)+"/"+verb, v.workForm(id))
	shown := numberPattern.FindStringSubmatch(text)
	path = regexp.MustCompile(`/decisions/\w+`).FindString(text)
	if shown == nil {
		v.w.t.Fatalf("no number is shown to %s %s: %s", verb, id, text)
	}
	return path, shown[1]
}

// file reads a file of the project.
func (w *world) file(name string) string {
	text, err := os.ReadFile(filepath.Join(w.dir, "project", name))
	if err != nil && !os.IsNotExist(err) {
		w.t.Fatal(err)
	}
	return string(text)
}

// event returns the data of the last event of a kind about a task; "" for none.
func (w *world) event(id envelope.ID, kind task.Kind) (data string) {
	for _, e := range w.details(id).Events {
		if e.Kind == kind {
			data = string(e.Data)
		}
	}
	return data
}

func TestWorkIsAppliedOnceItsNumberWasTypedAtTheTerminal(t *testing.T) {
	t.Parallel()
	w, v := withCoder(t)
	w.sendTo("coder", "t1")
	w.state("t1", task.Review)
	if _, text := v.get("/tasks/t1"); !strings.Contains(text, "sha256 "+v.workForm("t1").Get("digest")) {
		t.Errorf("the page of t1 does not name the patch that is approved: %s", text)
	}
	w.decide((*client.Client).Approve, "t1")
	if _, text := v.get("/tasks/t1"); !strings.Contains(text, `data-verb="apply"`) || !strings.Contains(text, `data-verb="discard"`) {
		t.Errorf("the page of t1 has no buttons for its work: %s", text)
	}
	path, number := v.beginWork("apply", "t1")
	question, found := w.question(), w.details("t1")
	digest := found.Worktree().Digest
	for _, want := range []string{"asks to apply the work of the task t1", "asks     edit it", "into     ", "changes  4 files, +4 -4: ", "patch    " + digest} {
		if !strings.Contains(question, want) {
			t.Errorf("the terminal asks %q; want %q in it", question, want)
		}
	}
	_, text := v.get(path)
	for _, want := range []string{"asks     edit it", "patch    " + digest, `<span class="minus" data-n="1">- before</span>`} {
		if !strings.Contains(text, want) {
			t.Errorf("the page of the number has no %q: %s", want, text)
		}
	}
	if got := w.file("main.txt"); got != "before\n" {
		t.Errorf("before the number was typed, main.txt is %q", got)
	}
	fmt.Fprintln(w.person, number)
	w.until(func() bool { _, text = v.get(path); return strings.Contains(text, "<h1>Applied") })
	if got := w.file("main.txt"); !strings.HasPrefix(got, "after") {
		t.Errorf("main.txt is %q; want the work", got)
	}
	data := w.event("t1", task.KindWorktreeApplied)
	if !strings.Contains(data, `"proof":"terminal"`) || !strings.Contains(data, digest) {
		t.Errorf("the event says %s; want the proof and the digest", data)
	}
	if _, text := v.get("/tasks/t1"); strings.Contains(text, `data-verb="apply"`) || strings.Contains(text, `data-verb="discard"`) {
		t.Errorf("the page still offers to apply or discard: %s", text)
	}
}

func TestWorkIsDiscardedOnceItsNumberWasTypedAtTheTerminal(t *testing.T) {
	t.Parallel()
	w, v := withCoder(t)
	w.finished("coder", "t1")
	path, number := v.beginWork("discard", "t1")
	if question := w.question(); !strings.Contains(question, "asks to discard the work of the task t1") {
		t.Errorf("the terminal asks %q", question)
	}
	fmt.Fprintln(w.person, number)
	var text string
	w.until(func() bool { _, text = v.get(path); return strings.Contains(text, "<h1>Discarded") })
	if status, text := v.post("/tasks/t1/apply", v.workForm("t1")); status != http.StatusConflict || !strings.Contains(text, "its work was discarded") {
		t.Errorf("apply after discard = %d, %s; want 409", status, text)
	}
	if _, text := v.get("/tasks/t1"); strings.Contains(text, `data-verb="apply"`) || !strings.Contains(text, "The work was discarded") {
		t.Errorf("the page does not say that the work was discarded: %s", text)
	}
}

func TestACookieAppliesNothing(t *testing.T) {
	t.Parallel()
	w, v := withCoder(t)
	w.sendTo("coder", "waits")
	w.finished("coder", "t1")
	w.state("waits", task.Review)
	for name, c := range map[string]struct {
		id     string
		form   url.Values
		status int
	}{
		"without the patch":        {"t1", url.Values{"token": {v.token}}, http.StatusBadRequest},
		"another patch":            {"t1", url.Values{"token": {v.token}, "digest": {"00"}}, http.StatusConflict},
		"an answer that waits":     {"waits", v.workForm("waits"), http.StatusConflict},
		"without the form's token": {"t1", url.Values{"digest": v.workForm("t1")["digest"]}, http.StatusForbidden},
		"a task that is not there": {"nobody", v.workForm("t1"), http.StatusNotFound},
	} {
		for _, verb := range []string{"apply", "discard"} {
			if status, text := v.post("/tasks/"+c.id+"/"+verb, c.form); status != c.status {
				t.Errorf("%s, %s = %d, %s; want %d", verb, name, status, text, c.status)
			}
		}
	}
	path, number := v.beginWork("apply", "t1")
	w.question()
	fmt.Fprintln(w.person, string('0'+'9'-number[0])+number[1:])
	w.until(func() bool { _, text := v.get(path); return strings.Contains(text, "Another number was typed") })
	w.refusal(task.KindApprovalRefused, "another number was typed")
	if got := w.file("main.txt"); got != "before\n" || w.event("t1", task.KindWorktreeApplied) != "" {
		t.Errorf("main.txt is %q; want that nothing was applied", got)
	}
}

// withKey has the daemon want signatures by an SSH key of the approver, which an ssh-agent has.
func (w *world) withKey(t *testing.T) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromSigner(key)
	if err != nil {
		t.Fatal(err)
	}
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
	appendTo(t, w.config, fmt.Sprintf("approvers:\n  - {name: ada, uid: %d, proof: ssh, keys: [%q]}\n", os.Geteuid(), line))
	w.stop(w.daemon)
	w.serve()
	w.env = append(w.env, "SSH_AUTH_SOCK="+serveAgent(t, w.dir, key))
}

func TestAnApplicationNeedsTheSignatureThatTheApproverNeeds(t *testing.T) {
	needGit(t)
	t.Parallel()
	w := newWorld(t)
	w.addCoder()
	w.withKey(t)
	v := w.visit(w.open())
	line := `{"schema_version": "1.0", "task_id": "t1", "requester_id": "eve", "target_agent": "coder", ` +
		`"target_role": "executor", "task_type": "edit", "description": "edit it", "input": {"refs": [], "payload": {}}}`
	if _, _, err := mailbox.Append(w.at.Root, []byte(line)); err != nil {
		t.Fatal(err)
	}
	w.result("t1")
	digest := v.workForm("t1").Get("digest")
	for says, proof := range map[string]client.Signature{
		"the proof of ada doesn't hold": {Expires: time.Now().Add(time.Minute), Signature: "x"},
		"is valid for 5m0s":             {Expires: time.Now().Add(24 * time.Hour), Signature: "x"},
	} {
		w.do(func(daemon *client.Client) error {
			_, err := daemon.Apply(t.Context(), "t1", client.ApplyOptions{Digest: digest, Proof: &proof})
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("apply with a wrong signature: %v; want %q", err, says)
			}
			return nil
		})
	}
	path, number := v.beginWork("apply", "t1")
	w.question() // the agent has signed, and still the person is asked
	if got := w.file("main.txt"); got != "before\n" {
		t.Errorf("before the number was typed, main.txt is %q", got)
	}
	fmt.Fprintln(w.person, number)
	w.until(func() bool { _, text := v.get(path); return strings.Contains(text, "<h1>Applied") })
	data := w.event("t1", task.KindWorktreeApplied)
	if !strings.Contains(data, `"proof":"ssh"`) || !strings.Contains(data, "SSH SIGNATURE") || !strings.Contains(data, `"by":"ada"`) {
		t.Errorf("the event says %s; want the signature of ada", data)
	}
}
