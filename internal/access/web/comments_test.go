package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// denyForm is the form that denies the answer of a task, with comments on lines.
func (v *visitor) denyForm(id, note string, comments ...string) url.Values {
	form := v.workForm(envelope.ID(id))
	form["patch"], form["digest"] = form["digest"], []string{v.w.details(envelope.ID(id)).Approvals[0].Digest}
	form.Set("note", note)
	for i := 0; i < len(comments); i += 2 {
		form.Add("at", comments[i])
		form.Add("comment", comments[i+1])
	}
	return form
}

// placeIn returns the place of a line of a file on a page, as the script of the page names it.
func placeIn(text, file, class string, n int) string {
	before, _, _ := strings.Cut(text, `<bdi class="mono">`+file+`</bdi>`)
	return fmt.Sprintf("%d %s %d", strings.Count(before, "data-file="), class, n)
}

func TestADeniedDifferenceWithCommentsComesBackAsASecondRound(t *testing.T) {
	t.Parallel()
	w, v := withCoder(t)
	w.sendTo("coder", "t1")
	w.state("t1", task.Review)
	_, page := v.get("/tasks/t1")
	if !strings.Contains(page, `name="again"`) || !strings.Contains(page, "comments.js") {
		t.Errorf("the page of t1 does not let a person comment: %s", page)
	}
	form := v.denyForm("t1", "not yet",
		placeIn(page, "main.txt", "minus", 1), "keep this line", placeIn(page, "main.txt", "plus", 1), "why <b>this</b>?\r\nsay it")
	form.Set("again", "1")
	_, text := v.post("/tasks/t1/deny", form)
	shown := numberPattern.FindStringSubmatch(text)
	if shown == nil {
		t.Fatalf("no number is shown: %s", text)
	}
	question := w.question()
	for _, want := range []string{
		"  | not yet", "  | main.txt, line 1, removed: before", "  |   keep this line", "  |   why <b>this</b>?",
		"then     the task is done once more",
	} {
		if !strings.Contains(question, want) {
			t.Errorf("the terminal asks %q; want %q in it", question, want)
		}
	}
	if !strings.Contains(text, "main.txt, line 1, removed: before") || strings.Contains(text, "<b>this") {
		t.Errorf("the page of the number does not show the comments as text: %s", text)
	}
	fmt.Fprintln(w.person, shown[1])
	w.state("t1-2", task.Review)
	found := w.details("t1-2")
	for _, want := range []string{"edit it", "not yet", `main.txt, line 1, removed: before`, "  keep this line", `  why <b>this</b>?`, "  say it"} {
		if !strings.Contains(strings.ReplaceAll(string(found.Request), `\n`, "\n"), want) {
			t.Errorf("the second round is %s; want %q in it", found.Request, want)
		}
	}
	first := w.details("t1")
	if found.Task.Requester != "eve" || found.Worktree().Dir != first.Worktree().Dir {
		t.Errorf("the second round is of %s, in %s; want eve, and the worktree of the first", found.Task.Requester, found.Worktree().Dir)
	}
	if _, text := v.get("/tasks/t1-2"); !strings.Contains(text, "Round of") {
		t.Errorf("the page does not name the denied task: %s", text)
	}
	if _, text := v.get("/tasks/t1"); !strings.Contains(text, "Done once more") || !strings.Contains(text, `href="/tasks/t1-2"`) {
		t.Errorf("the page of the denied task does not link the next round: %s", text)
	}
}

func TestACommentIsAboutALineThatWasShown(t *testing.T) {
	t.Parallel()
	w, v := withCoder(t)
	w.sendTo("coder", "t1")
	w.state("t1", task.Review)
	for name, c := range map[string]struct {
		change func(url.Values)
		status int
		says   string
	}{
		"a line that is not there": {func(f url.Values) { f.Add("at", "0 plus 999"); f.Add("comment", "x") }, http.StatusBadRequest, "has no line"},
		"a file that is not there": {func(f url.Values) { f.Add("at", "99 plus 1"); f.Add("comment", "x") }, http.StatusBadRequest, "has no line"},
		"no place at all":          {func(f url.Values) { f.Add("comment", "x") }, http.StatusBadRequest, "not complete"},
		"another patch": {func(f url.Values) {
			f.Add("at", "0 plus 1")
			f.Add("comment", "x")
			f.Set("patch", "00")
		}, http.StatusConflict, "patch is another one"},
		"a comment that is too long": {func(f url.Values) {
			f.Add("at", "0 plus 1")
			f.Add("comment", strings.Repeat("x", 5000))
		}, http.StatusBadRequest, "is longer than"},
		"no reason at all": {func(f url.Values) { f.Set("note", " ") }, http.StatusBadRequest, "a denial needs a reason"},
	} {
		form := v.denyForm("t1", "no")
		c.change(form)
		if status, text := v.post("/tasks/t1/deny", form); status != c.status || !strings.Contains(text, c.says) {
			t.Errorf("%s = %d, %s; want %d and %q", name, status, text, c.status, c.says)
		}
	}
}

func TestLinesAreCommentedByMouseAndByKeyboard(t *testing.T) {
	b := browser(t)
	w, _ := withCoder(t)
	w.sendTo("coder", "t1")
	w.state("t1", task.Review)
	b.enter(w.open())
	b.visit("/tasks/t1")
	b.sees("- before")
	b.do(chromedp.Click(`.pair .minus`), chromedp.KeyEvent("keep this line"))
	b.until(`document.activeElement.name === "comment" && document.activeElement.value === "keep this line"`)
	eval[bool](b, `(document.querySelector('pre.code:has(.plus)').focus(), true)`)
	b.do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Enter), chromedp.KeyEvent("and why"))
	b.until(`document.querySelectorAll(".say").length === 2 && document.querySelector("form[data-comments]").elements.again.checked`)
	b.passesAxe("comments", "light")
	b.keepPicture("comments")
	b.do(chromedp.Click(`details.deny summary`), chromedp.Click(`form[data-comments] button`))
	number := b.number()
	b.sees("keep this line", "and why", "the task is done once more")
	w.question()
	fmt.Fprintln(w.person, number)
	b.sees("Denied", "It is done once more as t1-2")
	w.state("t1-2", task.Review)
	if found := w.details("t1-2"); !strings.Contains(string(found.Request), "keep this line") || !strings.Contains(string(found.Request), "and why") {
		t.Errorf("the second round is %s; want both comments", found.Request)
	}
}
