package web_test

import (
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"mailboxd/internal/decisions/task"
)

func TestCancelEndsATaskOnlyWhenItIsSaidTwice(t *testing.T) {
	b, w := browser(t), newWorld(t)
	w.send("plan", "deployer", `{"seconds": 0}`)
	w.state("plan", task.Held)
	b.enter(w.open())
	b.visit("/tasks/plan")
	b.sees("plan")
	eval[bool](b, `(document.querySelector("details[id^=cancel-] > summary").click(), true)`)
	b.sees("It ends for good")
	if row := w.details("plan").Task; row.State != task.Held {
		t.Errorf("plan is %s after Cancel was chosen; want it held until that is confirmed", row.State)
	}
	b.do(chromedp.Click(`button[data-verb=cancel]`))
	w.state("plan", task.Done)
}

func TestDenyIsAsLargeAsOtherButtons(t *testing.T) {
	b, w := browser(t), newWorld(t)
	w.send("plan", "deployer", `{"seconds": 0}`)
	w.state("plan", task.Held)
	b.enter(w.open())
	b.sees("plan")
	size := func(selector, side string) float64 {
		t.Helper()
		return eval[float64](b, fmt.Sprintf(`document.querySelector(%q).getBoundingClientRect().%s`, selector, side))
	}
	const approve, deny = "button[data-verb=approve]", "details[id^=deny-] > summary"
	for _, side := range []string{"width", "height"} {
		if a, d := size(approve, side), size(deny, side); d > 1.3*a || d < 0.5*a {
			t.Errorf("Deny has a %s of %v, Approve one of %v", side, d, a)
		}
	}
	eval[bool](b, fmt.Sprintf(`(document.querySelector(%q).click(), true)`, deny))
	if form, button := size("details[id^=deny-] > form", "width"), size("details[id^=deny-] form > button", "width"); button > form/2 {
		t.Errorf("the button of the form is %v wide, the form %v; want the button no wider than its word needs", button, form)
	}
}

func TestATaskThatWaitsInAnInboxDoesNotCountAsRunning(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	appendTo(t, w.config, "  - {id: desk, inbox: {}}\n")
	w.stop(w.daemon)
	w.serve()
	w.send("fetch", "desk", `{}`)
	w.state("fetch", task.Waiting)
	_, text := w.visit(w.open()).get("/")
	if words := strings.Join(strings.Fields(text), " "); !strings.Contains(words, "No task runs now. 1 waits for an agent of an inbox.") {
		t.Errorf("the first page is %s; want that one task waits, and none runs", words)
	}
}

func TestTheFirstPageOfANewMailboxNamesAnAgentOfItsConfiguration(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, text := w.visit(w.open()).get("/")
	named := regexp.MustCompile(`<code>mailboxd ask ([a-z-]+) `).FindStringSubmatch(text)
	config, err := os.ReadFile(w.config)
	if err != nil {
		t.Fatal(err)
	}
	if named == nil || !strings.Contains(string(config), "id: "+named[1]) {
		t.Errorf("the first page proposes %q; want an agent of\n%s", named, config)
	}
}

func TestAChartSaysWhereItBeginsAndEndsAndItsHighestBar(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send("short", "writer", `{"seconds": 0}`)
	w.result("short")
	v := w.visit(w.open())
	for path, want := range map[string]string{
		"/":        `class="axis small faint"><span>an hour ago</span><span>at most 1 a`,
		"/budgets": `class="axis small faint"><span>`,
	} {
		if _, text := v.get(path); !strings.Contains(text, want) {
			t.Errorf("GET %s has no axis with %q: %s", path, want, text)
		}
	}
}

// What was on the page once, and says nothing to a reader.
func TestThePageHasNoneOfTheWordsThatNobodyUnderstood(t *testing.T) {
	t.Parallel()
	words := regexp.MustCompile(`\bOf {{|did not\b|>\s*Again\s*<|\brequires\b`)
	templates := os.DirFS("templates")
	names, err := fs.Glob(templates, "*.html")
	if err != nil || len(names) < 10 {
		t.Fatalf("%d templates, %v", len(names), err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(templates, name)
		if err != nil {
			t.Fatal(err)
		}
		if found := words.FindAll(text, -1); found != nil {
			t.Errorf("%s has %q", name, found)
		}
	}
}
