package web_test

import (
	"crypto/ed25519"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	"golang.org/x/crypto/ssh/agent"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/demo"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/testtools/slowtest"
)

// number is the number that the page shows.
func (b *tab) number() string {
	b.t.Helper()
	b.until(`!!document.querySelector(".number")`)
	return eval[string](b, `document.querySelector(".number").textContent`)
}

// details asks the daemon about a task.
func (w *world) details(id envelope.ID) (found client.TaskDetails) {
	w.t.Helper()
	w.do(func(daemon *client.Client) (err error) {
		found, err = daemon.Details(w.t.Context(), id)
		return err
	})
	return found
}

func TestAPersonApprovesByTypingTheNumberOfThePageAtTheTerminal(t *testing.T) {
	b, w := browser(t), newWorld(t)
	if err := demo.Begin(w.at.Root); err != nil {
		t.Fatal(err)
	}
	b.enter(w.open())
	b.sees("deploy-api-4.2")
	b.visit("/tasks/deploy-api-4.2")
	b.do(chromedp.Click(`button[data-verb=approve]`))
	number := b.number()
	question, digest := w.question(), w.details("deploy-api-4.2").Approvals[0].Digest
	for _, want := range []string{"approve the task deploy-api-4.2", "demo-agent deployer", "sandbox  none: ", "tools    ssh", digest, "asks     "} {
		if !strings.Contains(question, want) {
			t.Errorf("the terminal asks %q; want %q in it", question, want)
		}
	}
	shown := eval[string](b, `document.querySelector("pre.asked").textContent`)
	if said := strings.ReplaceAll(question, "\r", ""); shown == "" || !strings.Contains(said, shown) {
		t.Errorf("the page shows %q, and the terminal %q; want the same", shown, said)
	}
	if strings.Contains(question, "Type "+number) {
		t.Errorf("the terminal shows the number: %q", question)
	}
	fmt.Fprintln(w.person, number)
	b.sees("Approved")
	w.result("deploy-api-4.2")
	found := w.details("deploy-api-4.2")
	if p := found.Approvals[0].Proof; p == nil || p.Kind != "terminal" || !strings.HasPrefix(p.Terminal, "/dev/pts/") || found.Task.Status != envelope.OK {
		t.Errorf("proof %+v, status %s; want the terminal, and ok", p, found.Task.Status)
	}
	fmt.Fprintln(w.person) // the terminal is free again
	w.link()
}

func TestAnotherNumberDecidesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := demo.Begin(w.at.Root); err != nil {
		t.Fatal(err)
	}
	v := w.visit(w.open())
	w.state("deploy-api-4.2", task.Held)
	digest := w.details("deploy-api-4.2").Approvals[0].Digest
	form := url.Values{"token": {v.token}, "digest": {digest}}
	_, text := v.post("/tasks/deploy-api-4.2/approve", form)
	_, rest, _ := strings.Cut(text, `class="number">`)
	number := rest[:2]
	w.question()
	asked := w.details("rotate-keys-eu").Approvals[0]
	status, text := v.post("/tasks/rotate-keys-eu/approve", url.Values{"token": {v.token}, "digest": {asked.Digest}})
	if status != http.StatusConflict || !strings.Contains(text, `href="/decisions/`) {
		t.Errorf("a second decision at once = %d, %s; want 409, and a link to the first", status, text)
	}
	fmt.Fprintln(w.person, string('0'+'9'-number[0])+number[1:])
	w.until(func() bool {
		for _, e := range w.details("deploy-api-4.2").Events {
			if e.Kind == task.KindApprovalRefused {
				return true
			}
		}
		return false
	})
	w.refusal(task.KindApprovalRefused, "another number was typed")
	if row := w.details("deploy-api-4.2").Task; row.State != task.Held {
		t.Errorf("the task is %s; want held", row.State)
	}
}

func TestACookieApprovesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := demo.Begin(w.at.Root); err != nil {
		t.Fatal(err)
	}
	v := w.visit(w.open())
	w.state("deploy-api-4.2", task.Held)
	for name, c := range map[string]struct {
		form   url.Values
		status int
	}{
		"without the question":      {url.Values{"token": {v.token}}, http.StatusBadRequest},
		"about another question":    {url.Values{"token": {v.token}, "digest": {"00"}}, http.StatusConflict},
		"a denial without a reason": {url.Values{"token": {v.token}, "digest": {"00"}, "deny": {"1"}}, http.StatusBadRequest},
	} {
		path := "/tasks/deploy-api-4.2/approve"
		if c.form.Has("deny") {
			path = "/tasks/deploy-api-4.2/deny"
		}
		if status, text := v.post(path, c.form); status != c.status {
			t.Errorf("%s = %d, %s; want %d", name, status, text, c.status)
		}
	}
	if row := w.details("deploy-api-4.2").Task; row.State != task.Held {
		t.Errorf("the task is %s; want held", row.State)
	}
	if strings.Contains(w.shown(), "to confirm") {
		t.Errorf("the terminal was asked: %q", w.shown())
	}
}

func TestDecisionsOnThePageCanBeOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	appendTo(t, w.config, "web: {approve: off}\n")
	if err := demo.Begin(w.at.Root); err != nil {
		t.Fatal(err)
	}
	v := w.visit(w.open())
	w.state("deploy-api-4.2", task.Held)
	if status, text := v.get("/tasks/deploy-api-4.2"); status != http.StatusOK || strings.Contains(text, "/approve") || !strings.Contains(text, "Decisions on this page are off") {
		t.Errorf("GET = %d, %s; want the page without a form to approve", status, text)
	}
	form := url.Values{"token": {v.token}, "digest": {w.details("deploy-api-4.2").Approvals[0].Digest}}
	if status, text := v.post("/tasks/deploy-api-4.2/approve", form); status != http.StatusForbidden {
		t.Errorf("POST approve = %d, %s; want 403", status, text)
	}
}

func appendTo(t testing.TB, path, text string) {
	t.Helper()
	old, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, append(old, text...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestThePageIsNeverWeakerThanTheProofOfTheApprover(t *testing.T) {
	slowtest.SkipShort(t, "it waits for seconds")
	t.Parallel()
	w := newWorld(t)
	w.withKey(t)
	if err := demo.Begin(w.at.Root); err != nil {
		t.Fatal(err)
	}
	v := w.visit(w.open())
	w.state("rotate-keys-eu", task.Held)
	form := url.Values{"token": {v.token}, "digest": {w.details("rotate-keys-eu").Approvals[0].Digest}}
	_, text := v.post("/tasks/rotate-keys-eu/approve", form)
	_, rest, _ := strings.Cut(text, `class="number">`)
	w.question() // the agent has signed, and still the person is asked
	if row := w.details("rotate-keys-eu").Task; row.State != task.Held {
		t.Errorf("before the number was typed, the task is %s; want held", row.State)
	}
	fmt.Fprintln(w.person, rest[:2])
	w.result("rotate-keys-eu")
	if p := w.details("rotate-keys-eu").Approvals[0].Proof; p == nil || p.Kind != "ssh" || p.Signature == "" {
		t.Errorf("proof %+v; want a signature", p)
	}
}

// serveAgent serves an ssh-agent with a key, and returns its socket.
func serveAgent(t *testing.T, dir string, key ed25519.PrivateKey) string {
	t.Helper()
	keys := agent.NewKeyring()
	if err := keys.Add(agent.AddedKey{PrivateKey: key}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "agent.sock")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = agent.ServeAgent(keys, conn) // until the other side is gone
			_ = conn.Close()
		}
	})
	t.Cleanup(func() { _ = l.Close(); serving.Wait() })
	return path
}
