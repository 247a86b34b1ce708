package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"mailboxd/envelope"
	"mailboxd/internal/cli/demo"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/testtools/slowtest"
)

func TestASessionIsEnoughToHoldReleaseCancelRetryPauseAndResume(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visit(w.open())
	do := func(path string, form url.Values) {
		t.Helper()
		form.Set("token", v.token)
		if status, text := v.post(path, form); status != http.StatusOK {
			t.Errorf("POST %s = %d, %s", path, status, text)
		}
	}
	do("/agents/pause", url.Values{"agent": {"writer"}})
	w.send("t1", "writer", `{"seconds": 0}`)
	w.state("t1", task.Held)
	do("/tasks/t1/hold", url.Values{})
	do("/agents/resume", url.Values{"agent": {"writer"}})
	if row := w.details("t1").Task; row.State != task.Held {
		t.Errorf("t1 is %s; want held by the operator", row.State)
	}
	do("/tasks/t1/release", url.Values{})
	w.result("t1")
	w.send("t2", "deployer", `{"seconds": 0}`)
	w.state("t2", task.Held)
	do("/tasks/t2/cancel", url.Values{"reason": {"not today"}})
	w.state("t2", task.Done)
	do("/tasks/t2/retry", url.Values{"back": {"//example.com/"}})
	w.until(func() bool { return w.details("t2").Task.Revision == 2 })
	for _, path := range []string{"/tasks/t1/apply", "/tasks/t1/statement", "/agents/reload", "/tasks"} {
		if status, _ := v.post(path, url.Values{"token": {v.token}}); status == http.StatusOK {
			t.Errorf("POST %s = 200; the page has no such form", path)
		}
	}
}

func TestAPausedAgentShowsHowManyOfItsTasksStillRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send("slow", "tester", `{"seconds": 3600}`)
	w.state("slow", task.Running)
	v := w.visit(w.open())
	v.post("/agents/pause", url.Values{"token": {v.token}, "agent": {"tester"}})
	if _, text := v.get("/agents"); !strings.Contains(text, "paused, 1 still runs") {
		t.Errorf("the agents are %s; want that one task still runs", text)
	}
	v.post("/tasks/slow/cancel", url.Values{"token": {v.token}})
	w.state("slow", task.Done)
	if _, text := v.get("/agents"); !strings.Contains(text, ">paused</span>") {
		t.Errorf("the agents are %s; want that no task runs any more", text)
	}
}

func TestADrainedAgentIsPausedAndShowsWhatStillRuns(t *testing.T) {
	slowtest.SkipShort(t, "it waits for seconds")
	t.Parallel()
	w := newWorld(t)
	w.send("slow", "tester", `{"seconds": 3600}`)
	w.state("slow", task.Running)
	v := w.visit(w.open())
	if _, text := v.get("/agents"); !strings.Contains(text, `aria-label="Drain tester"`) || strings.Contains(text, `aria-label="Drain writer"`) {
		t.Errorf("the agents are %s; want a button to drain tester, which is at work, and no other agent", text)
	}
	if status, _ := v.post("/agents/drain", url.Values{"agent": {"tester"}}); status != http.StatusForbidden {
		t.Errorf("POST /agents/drain without the token = %d; want 403", status)
	}
	if status, text := v.post("/agents/drain", url.Values{"token": {v.token}, "agent": {"tester"}}); status != http.StatusOK || !strings.Contains(text, "paused, 1 still runs") {
		t.Errorf("POST /agents/drain = %d, %s; want that the agent is paused and one task still runs", status, text)
	}
}

func TestAnAgentThatWasAddedToTheConfigurationIsListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visit(w.open())
	appendTo(t, w.config, "  - {id: newcomer, exec: {command: [cat]}}\n")
	if status, text := v.get("/agents"); status != http.StatusOK || !strings.Contains(text, "newcomer") {
		t.Errorf("GET /agents = %d, %s; want the new agent", status, text)
	}
}

func TestAReplyOnThePageReachesTheAgent(t *testing.T) {
	b, w := browser(t), newWorld(t)
	if err := demo.Begin(w.at.Root); err != nil {
		t.Fatal(err)
	}
	b.enter(w.open())
	b.sees("waits for a reply")
	b.visit("/thread/churn-report")
	b.sees("Should the report name the customers")
	b.do(chromedp.SendKeys(`#reply`, "Only count them, please."), chromedp.Click(`form.stack button.main`))
	b.sees("Only count them, please.")
	w.result("churn-report")
	b.sees("The report follows your answer.")
}

func TestADenialOnThePageNeedsItsReasonAndTheNumber(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send("t1", "deployer", `{"seconds": 0}`)
	v := w.visit(w.open())
	w.state("t1", task.Held)
	form := url.Values{"token": {v.token}, "digest": {w.details("t1").Approvals[0].Digest}, "note": {"not in the freeze"}}
	_, text := v.post("/tasks/t1/deny", form)
	_, rest, _ := strings.Cut(text, `class="number">`)
	if question := w.question(); !strings.Contains(question, "deny the task t1") {
		t.Errorf("the terminal asks %q; want that it is a denial", question)
	}
	fmt.Fprintln(w.person, rest[:2])
	w.result("t1")
	if row := w.details("t1").Task; row.Status != envelope.Rejected || row.Kind != "approval_denied" {
		t.Errorf("t1 is %s, %s; want rejected, approval_denied", row.Status, row.Kind)
	}
}

func TestRevisionsAreComparedWithTheNextOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send("t1", "deployer", `{"seconds": 1, "region": "eu"}`)
	w.state("t1", task.Held)
	w.send("t1", "deployer", `{"seconds": 1, "region": "us"}`)
	w.until(func() bool { return w.details("t1").Task.Revision == 2 })
	_, text := w.visit(w.open()).get("/tasks/t1")
	for _, want := range []string{"Revision 1", `<span class="minus">-       &#34;region&#34;: &#34;eu&#34;`, `<span class="plus">&#43;       &#34;region&#34;: &#34;us&#34;`} {
		if !strings.Contains(text, want) {
			t.Errorf("the page of t1 has no %q: %s", want, text)
		}
	}
}

func TestTheSliderShowsAnEarlierMomentOfARun(t *testing.T) {
	slowtest.SkipShort(t, "it waits for seconds")
	t.Parallel()
	w := newWorld(t)
	if err := demo.Begin(w.at.Root); err != nil {
		t.Fatal(err)
	}
	v := w.visit(w.open())
	w.result("q4-sales")
	_, end := v.get("/runs/q4-sales")
	_, begin := v.get("/runs/q4-sales?at=1")
	for _, name := range []string{"q4-sales.1.1", "checker"} {
		if !strings.Contains(end, name) {
			t.Errorf("the run has no %s", name)
		}
	}
	if strings.Contains(end, "not yet") || strings.Count(begin, "not yet") < 2 {
		t.Errorf("after one event, %d parts are not there yet; at the end, %d", strings.Count(begin, "not yet"), strings.Count(end, "not yet"))
	}
}
