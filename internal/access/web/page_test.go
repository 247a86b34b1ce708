package web_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/testtools/slowtest"
	"mailboxd/mailbox"
)

// send appends a task for an agent of the demo.
func (w *world) send(id, agent, payload string) {
	w.t.Helper()
	w.sendAs("ada", id, agent, payload)
}

func (w *world) sendAs(requester, id, agent, payload string) {
	w.t.Helper()
	line := fmt.Sprintf(`{"schema_version": "1.0", "task_id": %q, "requester_id": %q, "target_agent": %q, `+
		`"target_role": "executor", "task_type": "work", "description": "the work %s", "input": {"refs": [], "payload": %s}}`, id, requester, agent, id, payload)
	if _, _, err := mailbox.Append(w.at.Root, []byte(line)); err != nil {
		w.t.Fatal(err)
	}
}

// mark marks the document, so that a reload is seen.
func (b *tab) mark() { eval[bool](b, `window.marked = true`) }

func (b *tab) wasReloaded() bool { return !eval[bool](b, `window.marked === true`) }

func TestATaskThatIsSentWhileSomebodyLooksAppears(t *testing.T) {
	b, w := browser(t), newWorld(t)
	b.enter(w.open())
	b.sees("Nothing waits for you", "No agent is at work")
	b.mark()
	w.send("urgent", "deployer", `{"seconds": 1}`)
	b.sees("1 task waits for you", "urgent", "the work urgent")
	b.visit("/tasks")
	b.mark()
	w.send("another", "writer", `{"seconds": 0}`)
	b.sees("another", "ok")
	if b.wasReloaded() {
		t.Error("the page was loaded anew")
	}
}

func TestTheOutputOfARunningAgentIsLive(t *testing.T) {
	b, w := browser(t), newWorld(t)
	w.send("slow", "tester", `{"seconds": 3600}`)
	w.state("slow", task.Running)
	b.enter(w.open())
	b.visit("/tasks/slow")
	b.sees("Building", "Starting the services", "Running the slow tests")
	w.do(func(daemon *client.Client) error {
		_, err := daemon.Cancel(t.Context(), "slow", client.ControlOptions{})
		return err
	})
	b.sees("cancelled")
	b.until(`!document.querySelector("pre[data-output]")`)
}

func TestAfterARestartOfTheDaemonThePageGoesOnFromTheLastEvent(t *testing.T) {
	b, w := browser(t), newWorld(t)
	b.enter(w.open())
	w.send("before", "deployer", `{"seconds": 0}`)
	b.sees("before")
	b.mark()
	w.stop(w.daemon)
	b.sees("Waiting", "The daemon is not running. It ended its agents (stop_agents_on_exit)", "What this page shows is old")
	b.mark()
	other := b.beside()
	other.do(chromedp.Navigate(eval[string](b, `location.href`)))
	other.sees("The daemon is not running")
	w.send("meanwhile", "deployer", `{"seconds": 0}`)
	w.serve()
	b.sees("meanwhile", "Live", "2 tasks wait for you")
	other.sees("meanwhile", "Live")
	if b.wasReloaded() {
		t.Error("the page was loaded anew")
	}
}

func TestTheKeyboardAloneReachesEverything(t *testing.T) {
	b, w := browser(t), newWorld(t)
	w.send("first", "deployer", `{"seconds": 0}`)
	w.state("first", task.Held)
	w.send("second", "deployer", `{"seconds": 0}`)
	w.state("second", task.Held)
	b.enter(w.open())
	b.sees("first", "second")
	b.do(chromedp.KeyEvent("a")) // no row is chosen
	b.do(chromedp.KeyEvent("/"))
	b.until(`location.pathname === "/tasks" && document.activeElement.type === "search"`)
	b.visit("/")
	b.sees("first", "second")
	focused := func(text string) {
		t.Helper()
		b.until(fmt.Sprintf(`document.activeElement.textContent.trim() === %q`, text))
	}
	b.do(chromedp.KeyEvent("j"))
	focused("first")
	b.do(chromedp.KeyEvent("j"))
	focused("second")
	b.do(chromedp.KeyEvent("k"))
	focused("first")
	b.do(chromedp.KeyEvent("?"))
	b.until(`document.querySelector("dialog").open`)
	b.do(chromedp.KeyEvent(kb.Escape))
	b.until(`!document.querySelector("dialog").open`)
	reached := map[string]bool{}
	for range 40 { // every link and button, by Tab alone
		b.do(chromedp.KeyEvent(kb.Tab))
		reached[eval[string](b, `document.activeElement.textContent.trim()`)] = true
	}
	for _, want := range []string{"Skip to the content", "mailboxd", "Tasks", "Events", "first", "Approve", "Deny", "Hold", "Cancel"} {
		if !reached[want] {
			t.Errorf("Tab never reaches %q: %v", want, reached)
		}
	}
	b.visit("/")
	b.sees("first")
	b.do(chromedp.KeyEvent("j"), chromedp.KeyEvent("\r"))
	b.until(`location.pathname === "/tasks/first"`)
	b.do(chromedp.KeyEvent("a"))
	number := b.number()
	w.question() // what was typed before it is dropped
	fmt.Fprintln(w.person, number)
	b.sees("Approved")
	b.visit("/tasks")
	b.sees("second")
	b.do(chromedp.KeyEvent("/"))
	b.until(`document.activeElement.type === "search"`)
	eval[bool](b, `(document.activeElement.value = "", true)`) // chromedp types the key, which a browser does not
	b.do(chromedp.KeyEvent("second"))
	b.until(`document.querySelectorAll("[data-row]").length === 1 && location.search.includes("second")`)
}

func TestReadingWorksWithoutScripts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send("plain", "writer", `{"seconds": 0}`)
	w.result("plain")
	v := w.visit(w.open())
	for path, want := range map[string]string{"/": "Last hour", "/tasks?text=plain": "the work plain", "/tasks/plain": "Done: the work plain.", "/events": "task.finished", "/runs/plain": "<noscript>"} {
		if status, text := v.get(path); status != 200 || !strings.Contains(text, want) {
			t.Errorf("GET %s = %d, %s; want %q", path, status, text, want)
		}
	}
}

func TestTheEventsOfATaskAreFoundWhileItsIdIsTyped(t *testing.T) {
	b, w := browser(t), newWorld(t)
	w.send("work-1", "writer", `{"seconds": 0}`)
	w.send("work-2", "writer", `{"seconds": 0}`)
	w.result("work-1")
	w.result("work-2")
	b.enter(w.open())
	b.visit("/events")
	b.do(chromedp.Click("#task"))
	for _, one := range []struct{ typed, sees string }{{"w", "could be any of"}, {"x", "No event matches"}, {"work-2", "task.finished"}} {
		eval[bool](b, `(document.querySelector("#task").value = "", true)`)
		b.do(chromedp.SendKeys("#task", one.typed))
		b.sees(one.sees)
		b.until(`document.activeElement.id === "task"`)
	}
	b.until(`document.querySelector("ol.time") && !document.querySelector("ol.time").innerText.includes("work-1")`)
}

// violations lists what axe found, of any impact.
const violations = `r.violations.map(v => v.id + " (" + v.impact + "): " + v.nodes.map(n => n.html + " " + n.any.map(a => a.message).join(" ")).join("\n  ")).join("\n")`

// axeRules are what axe checks.
const axeRules = `["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]`

// passesAxe checks the page that is shown.
func (b *tab) passesAxe(name, scheme string) {
	b.t.Helper()
	axe, err := os.ReadFile(filepath.Join("testdata", "axe.min.js"))
	if err != nil {
		b.t.Fatal(err)
	}
	b.do(chromedp.Evaluate[chromedp.Void](string(axe)))
	check := `axe.run(document, {runOnly: ` + axeRules + `}).then(r => ` + violations + `)`
	found, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](check, chromedp.EvalAwaitPromise))
	if err != nil || found != "" {
		b.t.Errorf("%s, %s: %v\n%s", name, scheme, err, found)
	}
}

func TestAxeFindsNothing(t *testing.T) {
	slowtest.Require(t, "it checks each page twice with several hundred rules")
	b, _ := lively(t)
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(scheme)
		for _, p := range pages {
			b.visit(p.path)
			b.sees(p.sees)
			b.passesAxe(p.name, scheme)
		}
	}
}

// TestTenThousandTasksAreFilteredAndScrolled measures how long each page takes. With the variable
// WEB_TIMES set, a page that takes more than 200 ms fails it: only an idle machine promises that.
func TestTenThousandTasksAreFilteredAndScrolled(t *testing.T) {
	slowtest.SkipShort(t, "it sends thousands of tasks")
	tasks := slowtest.Times(10_000)
	b, w := browser(t), newWorld(t)
	fill(t, w, tasks)
	b.enter(w.open())
	for _, path := range []string{"/", "/tasks", "/tasks?text=work-77", "/tasks?state=held&agent=deployer", "/events"} {
		best, paint := math.Inf(1), math.Inf(1)
		for range 5 {
			b.visit(path)
			b.until(`document.querySelectorAll("[data-row], ol.time li").length > 10`)
			b.until(`performance.getEntriesByName("first-contentful-paint").length > 0`) // the rows may come before it
			best = min(best, eval[float64](b, `performance.getEntriesByType("navigation")[0].responseEnd`))
			paint = min(paint, eval[float64](b, `performance.getEntriesByName("first-contentful-paint")[0].startTime`))
		}
		t.Logf("%s: %.0f ms, first paint %.0f ms", path, best, paint)
		if best > 200 && os.Getenv("WEB_TIMES") != "" {
			t.Errorf("%s took %.0f ms at best; want at most 200 ms", path, best)
		}
	}
	b.visit("/tasks")
	b.sees(fmt.Sprintf("The newest 100 of %d,0", tasks/1000), "Live")
	b.updatesFew(w, tasks)
	b.do(chromedp.Click("a.more"))
	b.sees("100 older of")
}

// updatesFew cancels five tasks of the list that is shown, and measures what the page gets of it.
func (b *tab) updatesFew(w *world, tasks int) {
	b.t.Helper()
	eval[bool](b, `(performance.clearResourceTimings(), performance.setResourceTimingBufferSize(1000), true)`)
	var last time.Time
	w.do(func(daemon *client.Client) (err error) {
		for i := range 5 {
			id := envelope.ID(fmt.Sprintf("work-%d", tasks-1-20*i))
			_, failed := daemon.Cancel(b.t.Context(), id, client.ControlOptions{})
			err = errors.Join(err, failed)
		}
		last = time.Now()
		return err
	})
	b.until(`document.querySelectorAll("[data-row] [data-tone=bad]").length === 5`)
	took := time.Since(last)
	const sizes = `performance.getEntriesByType("resource").filter(e => e.initiatorType === "xmlhttprequest").map(e => e.transferSize)`
	got := eval[[]int](b, sizes)
	b.t.Logf("updates of five tasks: %v bytes, the last row %s after the last cancellation", got, took.Round(time.Millisecond))
	if len(got) == 0 || slices.Max(got) > 20<<10 {
		b.t.Errorf("updates of five tasks are %v bytes; want at most 20 KB each", got)
	}
}

// fill has the daemon take tasks that wait for an approval.
func fill(t testing.TB, w *world, n int) {
	t.Helper()
	fillFor(t, w, "deployer", "work", n)
}

// fillFor has the daemon take tasks for an agent, which are held. Their ids begin with a name.
func fillFor(t testing.TB, w *world, agent, name string, n int) {
	t.Helper()
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, `{"schema_version": "1.0", "task_id": "%s-%d", "requester_id": "ada", "target_agent": %q, `+
			`"target_role": "executor", "task_type": "work", "description": "the work %d", "input": {"refs": [], "payload": {"seconds": 0}}}`+"\n",
			name, i, agent, i)
	}
	if err := os.MkdirAll(filepath.Join(w.at.Root, "tasks"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.at.Root, "tasks", name+".jsonl"), []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	w.state(envelope.ID(fmt.Sprintf("%s-%d", name, n-1)), task.Held)
}

// BenchmarkViewsOfTenThousandTasks measures a view of the page, from the request to its last byte.
func BenchmarkViewsOfTenThousandTasks(b *testing.B) {
	w := newWorld(b)
	fill(b, w, 10_000)
	v := w.visit(w.open())
	for _, path := range []string{"/", "/tasks", "/tasks?text=work-77", "/tasks?state=held&agent=deployer", "/tasks/work-5000", "/events"} {
		b.Run(path, func(b *testing.B) {
			for b.Loop() {
				if status, _ := v.get(path); status != 200 {
					b.Fatalf("GET %s = %d", path, status)
				}
			}
		})
	}
}

func TestAChangeRightAfterAnotherIsAnnounced(t *testing.T) {
	b, w := browser(t), newWorld(t)
	b.enter(w.open())
	w.send("first", "deployer", `{"seconds": 0}`)
	b.sees("1 task waits for you")
	w.send("second", "deployer", `{"seconds": 0}`)
	b.until(`document.querySelector("#live").textContent.includes("2 tasks wait for you")`)
}

func TestTheAnswerToAFormStays(t *testing.T) {
	b, w := browser(t), newWorld(t)
	w.send("first", "deployer", `{"seconds": 0}`)
	w.state("first", task.Held)
	b.enter(w.open())
	b.visit("/tasks/first")
	b.sees("Digest")
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("form[action$='/deny']").submit()`))
	b.sees("a denial needs a reason")
	other := b.beside()
	other.do(chromedp.Navigate(eval[string](b, `location.origin`)))
	w.send("second", "deployer", `{"seconds": 0}`)
	other.sees("2 tasks wait for you") // this page had the same event
	b.sees("a denial needs a reason")
}

func TestATaskWithTheNameOfADirectoryHasItsPages(t *testing.T) {
	b, w := browser(t), newWorld(t)
	w.send(".", "deployer", `{"seconds": 0}`)
	w.state(".", task.Held)
	b.enter(w.open())
	b.sees("the work .")
	b.do(chromedp.KeyEvent("j"), chromedp.KeyEvent("\r"))
	b.sees("Digest")
	at := eval[string](b, `location.pathname`)
	for link, title := range map[string]string{"Conversation": "Conversation", "Tree of the run": "Run of"} {
		b.visit(at)
		b.sees("Digest")
		b.visit(eval[string](b, `[...document.querySelectorAll("a")].find(a => a.textContent === "`+link+`").pathname`))
		b.until(`document.querySelector("h1").textContent.includes("` + title + `")`)
	}
	b.visit(at)
	b.do(chromedp.Click(`button[data-verb=hold]`))
	b.sees("Release")
}

func TestTheKeysCanBeOff(t *testing.T) {
	b, w := browser(t), newWorld(t)
	w.send("first", "deployer", `{"seconds": 0}`)
	w.state("first", task.Held)
	b.enter(w.open())
	b.sees("first")
	b.do(chromedp.Click(`#show-keys`), chromedp.Click(`#single`), chromedp.KeyEvent(kb.Escape))
	b.until(`!document.querySelector("dialog").open`)
	b.visit("/") // the browser remembers it
	b.sees("first")
	b.do(chromedp.KeyEvent("?"), chromedp.KeyEvent("j"))
	if open := eval[bool](b, `document.querySelector("dialog").open || document.activeElement.textContent === "first"`); open {
		t.Error("a key does something, though the keys are off")
	}
	b.do(chromedp.Click(`#show-keys`), chromedp.Click(`#single`), chromedp.KeyEvent(kb.Escape), chromedp.KeyEvent("j"))
	b.until(`document.activeElement.textContent.trim() === "first"`)
}
