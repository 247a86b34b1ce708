package web_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"mailboxd/internal/demo"
	"mailboxd/internal/task"
)

// pages are all pages with the data of the demo, by a name for a file.
var pages = []struct{ name, path, sees string }{
	{"now", "/", "deploy-api-4.2"},
	{"tasks", "/tasks", "release-notes-4.2"},
	{"tasks-none", "/tasks?text=nothingness", "No task matches"},
	{"task-approval", "/tasks/deploy-api-4.2", "Digest"},
	{"task-live", "/tasks/migrate-invoices", "Output"},
	{"task-failed", "/tasks/flaky-test-clock", "TestClock"},
	{"task-done", "/tasks/release-notes-4.2", "Who enforced what"},
	{"run", "/runs/q4-sales", "Moment"},
	{"thread", "/thread/churn-report", "Should the report name"},
	{"agents", "/agents", "deployer"},
	{"routing", "/routing", "review-pr-812"},
	{"route", "/routing/review-pr-812", "highest score"},
	{"route-waits", "/routing/audit-access", "no agent is free"},
	{"budgets", "/budgets", "ada"},
	{"events", "/events", "task.finished"},
	{"passkey", "/passkey", "Make a passkey"},
	{"send", "/send", "Send a task"},
	{"edit", "/tasks/rotate-keys-eu/edit", "Send the change"},
}

// lively is a world with the demo, in the state in which its agents work, wait and have failed.
func lively(t *testing.T) (*tab, *world) {
	t.Helper()
	b, w := browser(t), newWorld(t)
	if err := demo.Begin(w.at.Root); err != nil {
		t.Fatal(err)
	}
	b.enter(w.open())
	b.sees("deploy-api-4.2", "churn-report", "migrate-invoices")
	b.visit("/tasks/q4-sales")
	b.sees("were checked")
	b.visit("/tasks/release-notes-4.2")
	b.sees("Who enforced what")
	b.visit("/tasks/flaky-test-clock")
	b.sees("agent_crashed")
	w.result("review-pr-812")
	w.state("audit-licences", task.Running)
	return b, w
}

// TestScreenshots makes pictures of every page, for people to look at, in the directory that the
// variable WEB_SCREENSHOTS names, or with -artifacts in that of the test.
func TestScreenshots(t *testing.T) {
	dir := os.Getenv("WEB_SCREENSHOTS")
	if kept := flag.Lookup("test.artifacts"); dir == "" && kept != nil && kept.Value.String() == "true" {
		dir = t.ArtifactDir()
	}
	if dir == "" {
		t.Skip("no directory for pictures: set WEB_SCREENSHOTS, or use -artifacts")
	}
	b, w := lively(t)
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(scheme)
		for _, width := range []int64{390, 1280, 1920} {
			b.do(chromedp.EmulateViewport(width, 900))
			for _, p := range pages {
				b.visit(p.path)
				b.sees(p.sees)
				b.do(chromedp.WaitVisible(`#link[data-state="live"]`))
				b.picture(filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png", p.name, width, scheme)))
			}
			b.visit("/tasks/rotate-keys-eu")
			b.do(chromedp.Click(`button[data-verb=approve]`))
			b.number()
			b.picture(filepath.Join(dir, fmt.Sprintf("decision-%d-%s.png", width, scheme)))
			w.question()
			fmt.Fprintln(w.person, "no")
			b.sees("Nothing was decided")
			b.picture(filepath.Join(dir, fmt.Sprintf("undecided-%d-%s.png", width, scheme)))
		}
	}
}

// scheme sets the colour scheme of the system.
func (b *tab) scheme(name string) {
	b.t.Helper()
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}}
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, media); err != nil {
		b.t.Fatal(err)
	}
}

// picture saves a picture of the whole page.
func (b *tab) picture(path string) {
	b.t.Helper()
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(path, png, 0o600)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}
