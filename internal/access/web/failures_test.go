package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/testtools/slowtest"
)

func TestFailuresAreOnTheFirstPageAndFoundByTheirStatusAndError(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send("stopped", "deployer", `{"seconds": 0}`)
	w.state("stopped", task.Held)
	w.send("nowhere", "nobody", `{"seconds": 0}`)
	w.send("waits", "deployer", `{"seconds": 0}`)
	w.result("nowhere")
	v := w.visit(w.open())
	v.post("/tasks/stopped/cancel", url.Values{"token": {v.token}})
	w.result("stopped")
	_, first := v.get("/")
	for _, want := range []string{
		"Failed lately", "rejected (unknown_agent)", `href="/tasks?state=failed&amp;since=1h"`, `href="/tasks?state=well&amp;since=1h"`,
		"mailboxd retry stopped",
	} {
		if !strings.Contains(first, want) {
			t.Errorf("the first page has no %q: %s", want, first)
		}
	}
	if _, text := v.get("/tasks?state=well"); strings.Contains(text, "data-row") {
		t.Error("a failed task is in the list of those that ended well")
	}
	for path, want := range map[string]string{
		"/tasks?state=rejected": "nowhere", "/tasks?state=cancelled": "stopped", "/tasks?kind=unknown_agent": "nowhere",
		"/tasks?state=failed&kind=cancelled": "stopped", "/tasks?state=held": "waits", "/tasks?text=waits": "waits",
	} {
		status, text := v.get(path)
		listed := strings.Contains(text, `href="/tasks/`+want+`"`) && strings.Contains(text, ">1 task that matches.<")
		if status != http.StatusOK || strings.Count(text, "data-row") != 1 || !listed {
			t.Errorf("GET %s = %d, %s; want %s alone, as the one that matches", path, status, text, want)
		}
	}
}

func TestAListIsAWindowWithWhatEachTaskWaitsFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fill(t, w, 130)
	w.state("work-129", task.Held)
	v := w.visit(w.open())
	_, text := v.get("/tasks?rows=10000")
	if n := strings.Count(text, "data-row"); n != 100 {
		t.Errorf("a page of the list has %d rows; want 100", n)
	}
	_, rest, _ := strings.Cut(text, `class="more" href="`)
	older, _, _ := strings.Cut(rest, `"`)
	_, text = v.get(strings.ReplaceAll(older, "&amp;", "&"))
	if rows, waits := strings.Count(text, "data-row"), strings.Count(text, "approval until "); rows != 30 || waits != rows {
		t.Errorf("the next page, %q, has %d rows, %d of them with what they wait for; want 30", older, rows, waits)
	}
}

// TestReadersThatDoNotReadLeaveThePageToOthers has 300 connections that read nothing, which is more than the page keeps open. With
// the variable WEB_TIMES set, another reader that waits for more than a second fails it: only an idle machine promises that.
func TestReadersThatDoNotReadLeaveThePageToOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send("slow", "tester", `{"seconds": 3600}`)
	w.state("slow", task.Running)
	v := w.visit(w.open())
	readers := slowtest.Times(300)
	for i := range readers {
		path := []string{"/live", "/live?output=slow", "/tasks"}[i%3]
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, v.origin+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := v.http.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
	}
	slowest := time.Duration(0)
	for i := range 20 {
		w.send(fmt.Sprintf("more-%d", i), "deployer", `{"seconds": 0}`) // each stream has something to write
		began := time.Now()
		if status, text := v.sendOnce(http.MethodGet, []string{"/", "/tasks", "/tasks/slow"}[i%3], nil, nil); status != http.StatusOK {
			t.Errorf("GET = %d, %s; want the page", status, text)
		}
		slowest = max(slowest, time.Since(began))
	}
	t.Logf("beside %d readers that read nothing, the slowest of 20 views took %s", readers, slowest.Round(time.Millisecond))
	if slowest > time.Second && os.Getenv("WEB_TIMES") != "" {
		t.Errorf("the slowest view took %s; want at most 1s", slowest)
	}
}

func TestWhatIsNoTextAndWordsOfBothDirections(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send("שלום", "deployer", `{"seconds": 0}`)
	w.state("שלום", task.Held)
	v := w.visit(w.open())
	for _, path := range []string{"/runs/%ff", "/thread/%ff", "/routing/%ff", "/tasks/%ff"} {
		if status, _ := v.get(path); status != http.StatusNotFound {
			t.Errorf("GET %s = %d; want 404", path, status)
		}
	}
	for path, wants := range map[string][]string{
		"/":                               {`<bdi>שלום</bdi>`, `<p class="what" dir="auto">the work שלום</p>`, "<bdi>ada</bdi>"},
		"/tasks":                          {`<bdi>שלום</bdi>`, `<span class="two" dir="auto">the work שלום</span>`},
		"/tasks/%D7%A9%D7%9C%D7%95%D7%9D": {`<h1><bdi>שלום</bdi></h1>`, `dir="auto">the work שלום</p>`},
	} {
		_, text := v.get(path)
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("GET %s has no %q: %s", path, want, text)
			}
		}
	}
	if _, text := v.get("/"); strings.Contains(text, ">Live<") {
		t.Error("the page says that it is live before a script made it so")
	}
}
