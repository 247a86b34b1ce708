package web_test

import (
	"flag"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"mailboxd/internal/cli/demo"
	"mailboxd/internal/decisions/task"
	"mailboxd/mailbox"
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
func lively(t *testing.T, changes ...func(*world)) (*tab, *world) {
	t.Helper()
	b, w := browser(t), newWorld(t)
	for _, change := range changes {
		w.stop(w.daemon)
		change(w)
		w.serve()
	}
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

var update = flag.Bool("update", false, "make the pictures of the documentation anew")

// kept are the pictures of the documentation.
var kept = []struct{ name, path, sees, in string }{
	{"now", "/", "deploy-api-4.2", "README.md"},
	{"task", "/tasks/fix-clock", "The clock is fixed", "docs/web.md"},
	{"tasks", "/tasks", "release-notes-4.2", "docs/web.md"},
}

// answerToShow is an answer in Markdown.
const answerToShow = "## The clock is fixed\n\nThe test read the **local** time zone, so it failed after 22:00 UTC. `clock.go` now takes a location, " +
	"and the test sets it; see [the issue](https://example.org/issues/7).\n\n| test | before | after |\n| --- | ---: | ---: |\n" +
	"| TestClock | 3 of 10 | 10 of 10 |\n| TestZone | 9 of 10 | 10 of 10 |\n\n```go\nfunc Now(at *time.Location) time.Time {\n\treturn time.Now().In(at)\n}\n```\n"

// TestScreens makes the pictures of the documentation with -update. Without it, it checks that they
// are there and that the documentation shows them.
func TestScreens(t *testing.T) {
	if *update {
		takePictures(t)
	}
	for _, p := range kept {
		path := "docs/pictures/" + p.name + ".png"
		file, err := os.Open(filepath.Join("../../..", path))
		if err != nil {
			t.Fatal(err)
		}
		size, err := png.DecodeConfig(file)
		_ = file.Close()
		if err != nil || size.Width != 1280 {
			t.Errorf("%s is %d wide, %v; want a picture of 1280", path, size.Width, err)
		}
		text, err := os.ReadFile(filepath.Join("../../..", p.in))
		if from, _ := filepath.Rel(filepath.Dir(p.in), path); err != nil || !strings.Contains(string(text), "("+from+")") {
			t.Errorf("%s doesn't show %s (%v)", p.in, from, err)
		}
	}
}

// sendWords sends a task in words.
func (w *world) sendWords(id, agent, words string) {
	w.t.Helper()
	line := fmt.Sprintf(`{"schema_version": "1.0", "task_id": %q, "requester_id": "eve", "target_agent": %q, "target_role": "executor", `+
		`"task_type": "fix", "description": %q, "input": {"refs": []}}`, id, agent, words)
	if _, _, err := mailbox.Append(w.at.Root, []byte(line)); err != nil {
		w.t.Fatal(err)
	}
}

// takePictures has the demo and a task of Claude Code shown.
func takePictures(t *testing.T) {
	t.Helper()
	b, w := lively(t, func(w *world) { w.addClaude("claude", answerToShow) })
	w.sendWords("fix-clock", "claude", "TestClock fails each evening. Find out why, and fix it.")
	w.result("fix-clock")
	b.scheme("light")
	for _, p := range kept {
		b.do(chromedp.EmulateViewport(1280, 860))
		b.visit(p.path)
		b.sees(p.sees)
		b.do(chromedp.WaitVisible(`#link[data-state="live"]`))
		shot, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		if err == nil {
			err = os.WriteFile(filepath.Join("../../../docs/pictures", p.name+".png"), shot, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
