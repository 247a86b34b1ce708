package web_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/decisions/task"
)

var numberOnPage = regexp.MustCompile(`class="number">(\d\d)<`)

// typeNumber types the number of a page at the terminal, and returns what the terminal asks.
func (w *world) typeNumber(text string) string {
	w.t.Helper()
	number := numberOnPage.FindStringSubmatch(text)
	if number == nil {
		w.t.Fatalf("the page shows no number: %s", text)
	}
	asked := w.question()
	fmt.Fprintln(w.person, number[1])
	return asked
}

// begin posts a form, and returns the path of the page to which it leads.
func (v *visitor) begin(path string, form url.Values) (at, text string) {
	v.w.t.Helper()
	old := v.http.CheckRedirect
	v.http.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		at = r.URL.Path
		return nil
	}
	_, text = v.post(path, form)
	v.http.CheckRedirect = old
	return at, text
}

// addEcho adds an agent that answers, and one that fails.
func (w *world) addEcho() {
	w.t.Helper()
	appendTo(w.t, w.config, "  - {id: echo, exec: {command: [/bin/echo, done], output: text}, allow_unmetered: true}\n"+
		"  - {id: broken, exec: {command: [/bin/sh, -c, 'echo no >&2; exit 1']}, allow_unmetered: true}\n")
	w.allowPriorities()
	w.stop(w.daemon)
	w.serve()
}

// allowPriorities has the daemon take all priorities.
func (w *world) allowPriorities() {
	w.t.Helper()
	text, err := os.ReadFile(w.config)
	if err == nil {
		err = os.WriteFile(w.config, bytes.Replace(text, []byte("limits: {"), []byte("limits: {priority: 9, "), 1), 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// tasksOf are the tasks of an agent.
func (w *world) tasksOf(agent string) (all []client.Task) {
	w.t.Helper()
	w.do(func(daemon *client.Client) (err error) {
		all, err = daemon.Tasks(w.t.Context(), client.Filter{Agent: agent, Described: true})
		return err
	})
	return all
}

func TestATaskIsSentOnceItsNumberWasTyped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addEcho()
	v := w.visit(w.open())
	form := url.Values{"token": {v.token}, "agent": {"echo"}, "words": {"--count to 3"}, "tokens": {"500"}, "priority": {"2"}}
	status, text := v.post("/send", form)
	if n := len(w.tasksOf("echo")); status != http.StatusOK || n != 0 {
		t.Fatalf("POST /send = %d, and %d tasks before the number; want none: %s", status, n, text)
	}
	for _, want := range []string{"Send a task to echo", "words     --count to 3", "tokens    500", "It approves nothing"} {
		if asked := w.typeNumberOnce(&text); !strings.Contains(asked, want) {
			t.Errorf("the terminal asks %q; want %q in it", asked, want)
		}
	}
	w.until(func() bool { return len(w.tasksOf("echo")) == 1 })
	got := w.tasksOf("echo")[0]
	if got.Description != "--count to 3" || got.Priority != 2 {
		t.Errorf("the task is %+v; want its words and its priority", got)
	}
	w.result(got.ID)
	if _, text := v.post("/tasks/"+string(got.ID)+"/copy", url.Values{"token": {v.token}}); !strings.Contains(text, "<h2>Summary</h2>") {
		t.Errorf("a copy within ten minutes shows %s; want the new task", text)
	}
	w.until(func() bool { return len(w.tasksOf("echo")) == 2 })
	w.sendAs("eve", "deploy", "deployer", `{"seconds": 0}`)
	w.state("deploy", task.Held)
	approve := url.Values{"token": {v.token}, "digest": {w.details("deploy").Approvals[0].Digest}}
	if _, text := v.post("/tasks/deploy/approve", approve); !numberOnPage.MatchString(text) {
		t.Errorf("an approval needs no number: %s", text)
	}
	if row := w.details("deploy").Task; row.State != task.Held {
		t.Errorf("the task is %s; want held", row.State)
	}
}

// typeNumberOnce types the number of a page the first time, and returns the same question later.
func (w *world) typeNumberOnce(text *string) string {
	w.t.Helper()
	if asked, typed := strings.CutPrefix(*text, "asked: "); typed {
		return asked
	}
	asked := w.typeNumber(*text)
	*text = "asked: " + asked
	return asked
}

func TestACookieSendsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addEcho()
	w.sendAs("eve", "failed", "broken", `{}`)
	w.sendAs("eve", "waits", "deployer", `{"seconds": 0}`)
	w.result("failed")
	w.state("waits", task.Held)
	v := w.visit(w.open())
	token := url.Values{"token": {v.token}}
	with := func(pairs ...string) url.Values {
		form := url.Values{"token": {v.token}}
		for i := 0; i < len(pairs); i += 2 {
			form.Set(pairs[i], pairs[i+1])
		}
		return form
	}
	for name, c := range map[string]struct {
		path   string
		form   url.Values
		status int
	}{
		"no words":              {"/send", with("agent", "echo"), http.StatusBadRequest},
		"an unknown agent":      {"/send", with("agent", "nobody", "words", "x"), http.StatusBadRequest},
		"a relative directory":  {"/send", with("agent", "echo", "words", "x", "in", "../x"), http.StatusBadRequest},
		"a flag as a budget":    {"/send", with("agent", "echo", "words", "x", "tokens", "1 --root=/"), http.StatusBadRequest},
		"a place for anyone":    {"/send", with("agent", "*", "words", "x", "in", "/tmp"), http.StatusBadRequest},
		"no task to retry":      {"/retry", token, http.StatusBadRequest},
		"a task that is no id":  {"/retry", with("task", "../x"), http.StatusBadRequest},
		"an unknown task":       {"/retry", with("task", "unknown"), http.StatusNotFound},
		"a started task":        {"/tasks/failed/edit", with("revision", "1", "request", "{}"), http.StatusConflict},
		"another revision":      {"/tasks/waits/priority", with("revision", "7", "priority", "1"), http.StatusConflict},
		"no number as priority": {"/tasks/waits/priority", with("revision", "1", "priority", "x"), http.StatusBadRequest},
		"another id":            {"/tasks/waits/edit", with("revision", "1", "request", `{"task_id": "other"}`), http.StatusBadRequest},
		"no JSON":               {"/tasks/waits/edit", with("revision", "1", "request", `{`), http.StatusBadRequest},
	} {
		if status, text := v.post(c.path, c.form); status != c.status || numberOnPage.MatchString(text) {
			t.Errorf("%s = %d, %s; want %d", name, status, text, c.status)
		}
	}
	decision, text := v.begin("/retry", with("task", "failed"))
	number := numberOnPage.FindStringSubmatch(text)
	w.question()
	fmt.Fprintln(w.person, string('0'+'9'-number[1][0])+number[1][1:])
	for end := time.Now().Add(patience); !strings.Contains(text, "It was not done") && time.Now().Before(end); <-time.After(pause) {
		_, text = v.get(decision)
	}
	if row := w.details("failed").Task; row.Revision != 1 {
		t.Errorf("another number was typed, and the task has revision %d", row.Revision)
	}
}

func TestARetryOfWhichAPartFailsSaysWhatWasDone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addEcho()
	w.send("failed", "broken", `{}`)
	w.result("failed")
	w.send("waits", "deployer", `{"seconds": 0}`)
	w.state("waits", task.Held)
	v := w.visit(w.open())
	decision, text := v.begin("/retry", url.Values{"token": {v.token}, "task": {"failed", "waits"}})
	w.question()
	fmt.Fprintln(w.person, numberOnPage.FindStringSubmatch(text)[1])
	for end := time.Now().Add(patience); !strings.Contains(text, "A part was done") && time.Now().Before(end); <-time.After(pause) {
		_, text = v.get(decision)
	}
	for _, want := range []string{"A part was done", "1 of 2 are retried; not these: waits: ", `href="/tasks?state=open"`} {
		if !strings.Contains(text, want) {
			t.Errorf("the page has no %q: %s", want, text)
		}
	}
	if row := w.details("failed").Task; row.Revision != 2 {
		t.Errorf("the failed task has revision %d; want 2", row.Revision)
	}
}

func TestATaskThatWaitsIsChangedAndGetsAnotherPriority(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addEcho()
	w.send("waits", "deployer", `{"seconds": 0}`)
	w.state("waits", task.Held)
	v := w.visit(w.open())
	_, text := v.post("/tasks/waits/priority", url.Values{"token": {v.token}, "revision": {"1"}, "priority": {"3"}})
	if asked := w.typeNumber(text); !strings.Contains(asked, "Change the task waits") || !strings.Contains(asked, `"mbx.priority": 3`) {
		t.Errorf("the terminal asks %q; want the new request", asked)
	}
	w.until(func() bool { row := w.details("waits").Task; return row.Revision == 2 && row.Priority == 3 })
	_, text = v.get("/tasks/waits/edit")
	if !strings.Contains(text, `name="revision" value="2"`) || !strings.Contains(text, "the work waits") {
		t.Errorf("the form has not the request: %s", text)
	}
	request := strings.Replace(string(w.details("waits").Request), "the work waits", "other work", 1)
	if status, text := v.post("/tasks/waits/edit", url.Values{"token": {v.token}, "revision": {"2"}, "request": {request}}); status != http.StatusOK {
		t.Errorf("an edit = %d, %s", status, text)
	}
	w.until(func() bool { return w.details("waits").Task.Revision == 3 })
}

func TestTwoOfTwentyFailuresAreFoundAndRetried(t *testing.T) {
	b, w := browser(t), newWorld(t)
	w.addEcho()
	for i := range 20 {
		w.sendAs("eve", fmt.Sprintf("fails-%d", i), "broken", `{}`)
		w.sendAs("eve", fmt.Sprintf("works-%d", i), "echo", `{}`)
	}
	for i := range 20 {
		w.result(envelope.ID(fmt.Sprintf("fails-%d", i)))
		w.result(envelope.ID(fmt.Sprintf("works-%d", i)))
	}
	b.enter(w.open())
	b.sees("Failed lately")
	b.do(chromedp.Click(`a[href="/tasks?state=failed&since=24h"]`))
	b.sees("20 tasks that match")
	b.passesAxe("failures", "light")
	if eval[bool](b, `document.querySelector("#retry").checkVisibility()`) {
		t.Error("the button to retry the chosen tasks shows before one is chosen")
	}
	b.do(chromedp.Click(`input[value="fails-3"]`), chromedp.Click(`input[value="fails-7"]`), chromedp.Click(`#retry button`))
	number := b.number()
	if asked := w.question(); !strings.Contains(asked, "fails-3, revision 1, broken: the work fails-3") || !strings.Contains(asked, "fails-7") {
		t.Errorf("the terminal asks %q; want both tasks", asked)
	}
	fmt.Fprintln(w.person, number)
	b.sees("It was sent")
	for i := range 20 {
		id, want := envelope.ID(fmt.Sprintf("fails-%d", i)), 1
		if i == 3 || i == 7 {
			want = 2
		}
		if row := w.details(id).Task; row.Revision != want {
			t.Errorf("%s has revision %d; want %d", id, row.Revision, want)
		}
	}
}
