package web_test

import (
	"net/http"
	"strings"
	"testing"

	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/demo"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/testtools/slowtest"
)

func TestTheChoiceOfAnAgentIsShownWithItsCandidatesAndExclusions(t *testing.T) {
	slowtest.SkipShort(t, "it waits for seconds")
	t.Parallel()
	w := newWorld(t)
	if err := demo.Begin(w.at.Root); err != nil {
		t.Fatal(err)
	}
	w.result("review-pr-812")
	w.state("audit-licences", task.Running)
	w.state("audit-access", task.Held)
	v := w.visit(w.open())
	for path, want := range map[string][]string{
		"/routing":                      {`href="/routing/review-pr-812"`, "2 of 8 agents", "has what the task needs (skill:review@^1), highest score"},
		"/routing/review-pr-812":        {`data-tone="ok">chosen`, "1.000", "0.909", "has no capability &#34;skill:review@^1&#34;", "domain:api", "give the same decision"},
		"/routing/audit-access":         {"<h2>Now", "no agent is free", "all 1 slots are taken", `data-tone="wait">concurrency`},
		"/routing/unit-tests-main":      {"It names its agent: tester"},
		"/tasks/review-pr-812":          {`href="/routing/review-pr-812"`},
		"/tasks/audit-access":           {`href="/routing/audit-access"`},
		"/tasks?text=review-pr-812":     {"reviewer"},
		"/events?kind=routing&since=1h": {"routing.decided"},
	} {
		if status, text := v.get(path); status != http.StatusOK || !containsAll(text, want) {
			t.Errorf("GET %s = %d, %s; want %q", path, status, text, want)
		}
	}
	if _, text := v.get("/tasks/unit-tests-main"); strings.Contains(text, "/routing/unit-tests-main") {
		t.Error("the page of a task that names its agent has a link to a choice")
	}
	for path, want := range map[string]int{"/routing/nobody": http.StatusNotFound, "/routing/..%2f": http.StatusNotFound} {
		if status, _ := v.get(path); status != want {
			t.Errorf("GET %s = %d; want %d", path, status, want)
		}
	}
}

func TestADecisionThatIsMadeWhileSomebodyLooksIsListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visit(w.open())
	if _, text := v.get("/routing"); !strings.Contains(text, "No agent was chosen yet") {
		t.Errorf("without a decision the list is %s", text)
	}
	if err := demo.Begin(w.at.Root); err != nil {
		t.Fatal(err)
	}
	w.state("audit-access", task.Held)
	w.state("audit-licences", task.Running)
	if _, text := v.get("/routing"); !strings.Contains(text, "audit-licences") || strings.Contains(text, "audit-access") {
		t.Errorf("the list is %s; want the decision about audit-licences, and none about audit-access", text)
	}
	w.do(func(daemon *client.Client) error {
		_, err := daemon.Cancel(t.Context(), "audit-licences", client.ControlOptions{})
		return err
	})
	w.state("audit-access", task.Running)
	if _, text := v.get("/routing"); strings.Index(text, "audit-access") > strings.Index(text, "audit-licences") || !strings.Contains(text, "audit-access") {
		t.Errorf("the list is %s; want the decision about audit-access first", text)
	}
}

func containsAll(text string, want []string) bool {
	for _, w := range want {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}
