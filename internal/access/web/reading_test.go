package web_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// answerOfClaude is what Claude Code prints in a run: words, tools, a failure and an answer.
const answerOfClaude = `{"type":"system","subtype":"init","session_id":"s1","cwd":"/tmp","tools":[]}
{"type":"assistant","message":{"content":[{"type":"text","text":"I look at the tests first.\nThen at the code."},{"type":"tool_use","id":"1","name":"Bash","input":{"command":"go test ./..."}}]}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"1","is_error":true,"content":"FAIL clock_test.go <b>"}]}}
{"type":"assistant","message":{"content":[{"type":"text","text":"The clock is wrong."},{"type":"tool_use","id":"2","name":"Edit","input":{"file_path":"/tmp/clock.go"}},{"type":"tool_use","id":"3","name":"Bash","input":{"command":"go test ./clock"}}]}}
{"type":"result","subtype":"success","is_error":false,"result":%q,"session_id":"s1","duration_ms":8100,"num_turns":3,"total_cost_usd":0.05,"usage":{"input_tokens":6000,"output_tokens":187}}
`

// addClaude adds an agent that prints what Claude Code prints, with an answer.
func (w *world) addClaude(id, answer string) {
	w.t.Helper()
	path := filepath.Join(w.dir, id+".out")
	if err := os.WriteFile(path, fmt.Appendf(nil, answerOfClaude, answer), 0o600); err != nil {
		w.t.Fatal(err)
	}
	appendTo(w.t, w.config, fmt.Sprintf("  - {id: %s, exec: {command: [/bin/cat, %s], output: claude}}\n", id, path))
}

// order checks that texts follow each other.
func order(t *testing.T, text string, parts ...string) {
	t.Helper()
	for at := 0; len(parts) > 0; parts = parts[1:] {
		i := strings.Index(text[at:], parts[0])
		if i < 0 {
			t.Fatalf("%q is not in the rest of the page: %s", parts[0], text[at:])
		}
		at += i
	}
}

func TestThePageOfATaskIsReadFromItsRequestToItsAttempts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addClaude("claude", "## Fixed\n\nThe **clock** was wrong, see [the issue](https://example.org/7) and [the file](clock.go).\n\n- one\n- two")
	w.stop(w.daemon)
	w.serve()
	w.send("fix", "claude", `{"seconds": 0}`)
	w.result("fix")
	v := w.visit(w.open())
	_, text := v.get("/tasks/fix")
	order(t, text, "<h2>Request</h2>", "the work fix", "<h2>Result", "<h3>Fixed</h3>", "<strong>clock</strong>",
		`rel="noopener noreferrer" href="https://example.org/7">the issue</a>`, "(<bdi>clock.go</bdi>)", "<li>one</li>",
		"<h2>Attempt 1 ", "I look at the tests first.", "1\n              tool<", "failed</span>", "Bash go test ./...",
		"clock_test.go &lt;b&gt;", "The clock is wrong.",
		"<h2>Events</h2>", "<h2>Summary</h2>", "<h3>Timeline</h3>", "Queued", "Run, 3 tools", "Ended: ok")
	_, text = v.get("/tasks/fix?find=CLOCK+is")
	n := strings.Count(text, "<details id=\"step-")
	if n != 1 || !strings.Contains(text, "The <mark>clock is</mark> wrong.") || !strings.Contains(text, "1 of 3") {
		t.Errorf("the search shows %d steps; want one, with a mark: %s", n, text)
	}
	if _, text = v.get("/tasks/fix?find=%3Cb"); !strings.Contains(text, "<mark>&lt;b</mark>&gt;") {
		t.Errorf("the words that are searched for are not escaped: %s", text)
	}
}

func TestTheTranscriptOfAnEarlierAttemptIsShownOnDemand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	appendTo(t, w.config, "  - {id: twice, exec: {command: [/bin/sh, -c, 'echo an attempt; exit 75']}, retries: 1}\n")
	w.stop(w.daemon)
	w.serve()
	w.sendAs("eve", "again", "twice", `{"seconds": 0}`)
	w.result("again")
	v := w.visit(w.open())
	if n := len(w.details("again").Runs); n < 2 {
		t.Fatalf("the task has %d runs; want 2", n)
	}
	_, text := v.get("/tasks/again")
	order(t, text, "<h2>Attempt 2 ", `id="step-2-0"`, "<h2>Attempt 1 ", `href="/tasks/again?attempt=1#attempt-1">Show its transcript`)
	_, text = v.get("/tasks/again?attempt=1")
	order(t, text, "<h2>Attempt 2 ", "?attempt=2#attempt-2", "<h2>Attempt 1 ", `id="step-1-0"`)
	for _, bad := range []string{"0", "-1", "99", "x", "1e9"} {
		if status, _ := v.get("/tasks/again?attempt=" + bad); status != http.StatusOK {
			t.Errorf("?attempt=%s = %d; want 200", bad, status)
		}
	}
}

func TestALongErrorAndAnAnswerThatIsAFileAreReadable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	appendTo(t, w.config, "  - {id: fails, exec: {command: [/bin/sh, -c, 'echo one >&2; echo two >&2; exit 1']}}\n"+
		"  - {id: filer, exec: {command: [/bin/echo, 'file:///tmp/answer*of*it.md'], output: text}, allow_unmetered: true}\n")
	w.stop(w.daemon)
	w.serve()
	w.sendAs("eve", "broken", "fails", `{"seconds": 0}`)
	w.sendAs("eve", "filed", "filer", `{"seconds": 0}`)
	w.result("broken")
	w.result("filed")
	v := w.visit(w.open())
	if _, text := v.get("/tasks/broken"); strings.Contains(text, `\n`) {
		t.Errorf(`the page of a failure has \n: %s`, text)
	}
	_, text := v.get("/tasks/filed")
	order(t, text, "<h2>Result", ">/tmp/answer*of*it.md</p>")
}

func TestAnAnswerOfAnAgentRunsNoScriptInTheBrowser(t *testing.T) {
	b, w := browser(t), newWorld(t)
	w.addClaude("claude", "<script>window.bad = 1</script> <img src=x onerror='window.bad = 1'> [a](javascript:window.bad=1) "+
		"[b](https://example.org/) ![c](/icon.svg) <svg onload='window.bad=1'>")
	w.stop(w.daemon)
	w.serve()
	w.send("attack", "claude", `{"seconds": 0}`)
	w.result("attack")
	b.enter(w.open())
	b.visit("/tasks/attack")
	b.sees("<script>window.bad = 1</script>")
	b.do(chromedp.Click(`#step-1-1 summary`), chromedp.SendKeys("#find", "issue"))
	b.until(`location.search.includes("find=issue")`)
	if bad := eval[bool](b, `"bad" in window || !!document.querySelector(".md script, .md img, .md svg, .md [onerror], a[href^='javascript']")`); bad {
		t.Errorf("the page has what the agent wrote as markup: %s", eval[string](b, `document.querySelector(".md").innerHTML`))
	}
	links := eval[string](b, `[...document.querySelectorAll("section > .stack > .md a")].map(a => a.href + " " + a.rel).join()`)
	if links != "https://example.org/ noopener noreferrer" {
		t.Errorf("the links of the answer are %q", links)
	}
}

func TestTheTranscriptIsSearchedWhileWordsAreTyped(t *testing.T) {
	b, w := browser(t), newWorld(t)
	w.addClaude("claude", "It works.")
	w.stop(w.daemon)
	w.serve()
	w.send("fix", "claude", `{"seconds": 0}`)
	w.result("fix")
	w.state(envelope.ID("fix"), task.Done)
	b.enter(w.open())
	b.visit("/tasks/fix")
	b.sees("Attempt 1")
	b.do(chromedp.KeyEvent("/"))
	b.until(`document.activeElement.id === "find"`)
	eval[bool](b, `(document.activeElement.value = "", true)`)
	b.do(chromedp.KeyEvent("clock is"))
	b.until(`document.querySelectorAll(".steps details").length === 1 && document.querySelector("mark")?.textContent === "clock is"`)
	b.until(`document.activeElement.id === "find"`)
}
