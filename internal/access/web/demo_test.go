package web_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
)

func TestTheDemoShowsAMailboxFullOfLifeUntilItIsStopped(t *testing.T) {
	b, dir := browser(t), t.TempDir() // the link of the demo doesn't live long
	w := &world{t: t, dir: dir, links: make(chan string, 9), asked: make(chan string, 9), env: append(os.Environ(), "HOME="+dir, "TMPDIR="+dir, "XDG_RUNTIME_DIR=")}
	cmd := w.start("demo", "--web")
	b.enter(w.link())
	b.sees("deploy-api-4.2", "waits for approval", "churn-report", "waits for a reply", "migrate-invoices", "ended well")
	b.visit("/agents")
	b.sees("at work", "planner")
	fmt.Fprint(w.person, "\x03") // Ctrl-C
	if err := w.wait(cmd); err != nil {
		t.Errorf("the demo ended with %v, %q; want nil", err, w.shown())
	}
	left, err := os.ReadDir(dir)
	for _, entry := range left {
		if err != nil || strings.HasPrefix(entry.Name(), "mailboxd-demo-") {
			t.Errorf("the demo left %s behind (%v)", entry.Name(), err)
		}
	}
}

func TestEnterPrintsAnotherLinkAndTheEndOfTheTerminalEndsThePage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cmd := w.start("web", "--config", w.config)
	first := w.link()
	fmt.Fprintln(w.person)
	second := w.link()
	if first == second {
		t.Errorf("both links are %s", first)
	}
	if status, _ := w.visit(second).get("/"); status != http.StatusOK {
		t.Errorf("GET / = %d; want 200", status)
	}
	_ = w.person.Close() // the window of the terminal is closed
	_ = w.wait(cmd)      // by a signal, or by itself
}
