package web_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/testtools/slowtest"
)

// tabTo presses Tab until an element has the focus.
func (b *tab) tabTo(selector string) {
	b.t.Helper()
	for range 200 {
		b.do(chromedp.KeyEvent(kb.Tab))
		if eval[bool](b, fmt.Sprintf(`!!document.activeElement?.matches(%q)`, selector)) {
			return
		}
	}
	b.t.Fatalf("Tab never reaches %s\nthe page shows:\n%s", selector, b.text())
}

// confirm types the number of the page at the terminal.
func (w *world) confirm(b *tab) {
	w.t.Helper()
	number := b.number()
	w.question() // what was typed before it is dropped
	fmt.Fprintln(w.person, number)
}

// applied checks that the work of a task is in the project, and takes it out again.
func (w *world) applied(id envelope.ID, proof string) {
	w.t.Helper()
	if got := w.file("main.txt"); !strings.HasPrefix(got, "after") {
		w.t.Errorf("%s: main.txt is %q; want the work", id, got)
	}
	if data := w.event(id, task.KindWorktreeApplied); !strings.Contains(data, `"proof":"`+proof+`"`) {
		w.t.Errorf("%s: the event says %s; want the proof %s", id, data, proof)
	}
	for _, args := range [][]string{{"checkout", "-q", "."}, {"clean", "-qfd"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = filepath.Join(w.dir, "project"), w.env
		if out, err := cmd.CombinedOutput(); err != nil {
			w.t.Fatalf("git %q: %v: %s", args, err, out)
		}
	}
}

// reviewing has a task of the coder whose answer waits, and a browser that shows its page.
func (w *world) reviewing(b *tab, id string) {
	w.t.Helper()
	w.sendTo("coder", id)
	w.state(envelope.ID(id), task.Review)
	b.visit("/tasks/" + id)
	b.sees("You are asked to agree to exactly this", "- before")
}

func TestAWorktreeTaskIsReviewedAndAppliedByMouseOnAnyScreen(t *testing.T) {
	slowtest.Require(t, "it reviews a task on six screens")
	b := browser(t)
	w, _ := withCoder(t)
	fmt.Fprintln(w.person)
	b.enter(w.link())
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(scheme)
		for _, width := range []int64{390, 1024, 1920} {
			id := fmt.Sprintf("%s-%d", scheme, width)
			b.do(chromedp.EmulateViewport(width, 900))
			w.reviewing(b, id)
			b.keepPicture("review-" + id)
			b.do(chromedp.Click(`button[data-verb=approve]`))
			w.confirm(b)
			b.sees("Approved")
			b.do(chromedp.Click(`a.button.main`))
			b.until(`!!document.querySelector("button[data-verb=apply]")`)
			b.do(chromedp.Click(`button[data-verb=apply]`))
			b.until(`location.pathname.startsWith("/decisions/") && document.readyState == "complete"`)
			b.sees("- before")
			b.passesAxe("apply, "+id, scheme)
			b.keepPicture("apply-" + id)
			if eval[bool](b, `document.documentElement.scrollWidth > innerWidth`) {
				t.Errorf("%s: the page scrolls to the side", id)
			}
			w.confirm(b)
			b.sees("its work is in the working tree")
			w.applied(envelope.ID(id), "terminal")
		}
	}
}

func TestAWorktreeTaskIsReviewedAndAppliedByKeyboardAlone(t *testing.T) {
	slowtest.Require(t, "it presses Tab many times")
	b := browser(t)
	w, _ := withCoder(t)
	fmt.Fprintln(w.person)
	b.enter(w.link())
	w.sendTo("coder", "t1")
	w.state("t1", task.Review)
	b.sees("edit it")
	b.do(chromedp.KeyEvent("j"), chromedp.KeyEvent(kb.Enter))
	b.until(`location.pathname === "/tasks/t1"`)
	b.sees("- before")
	b.do(chromedp.KeyEvent("a"))
	w.confirm(b)
	b.sees("Approved")
	b.tabTo(`a.button.main`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.until(`!!document.querySelector("button[data-verb=apply]")`)
	b.tabTo(`button[data-verb=apply]`)
	b.do(chromedp.KeyEvent(kb.Enter))
	w.confirm(b)
	b.sees("its work is in the working tree")
	w.applied("t1", "terminal")
}

// coderWithPasskey is a browser with a passkey that the daemon wants, and the world of withCoder with more configuration.
func coderWithPasskey(t *testing.T, more string) (*tab, *world) {
	t.Helper()
	b := browser(t)
	w, _ := withCoder(t)
	fmt.Fprintln(w.person)
	b.enter(w.link())
	b.authenticator()
	line := w.enrol(b)
	appendTo(t, w.config, more)
	w.require(line)
	return b, w
}

func TestAWorktreeTaskIsReviewedAndAppliedWithAPasskey(t *testing.T) {
	slowtest.Require(t, "it restarts the daemon")
	b, w := coderWithPasskey(t, "")
	w.reviewing(b, "t1")
	b.do(chromedp.Click(`button[data-verb=approve]`))
	b.sees("Use your passkey", "- before")
	w.question()
	b.do(chromedp.Click(`form[data-passkey] button`))
	b.sees("Approved")
	b.do(chromedp.Click(`a.button.main`))
	b.until(`!!document.querySelector("button[data-verb=apply]")`)
	b.do(chromedp.Click(`button[data-verb=apply]`))
	b.sees("Use your passkey", "It signs that you apply the work of the task", "- before")
	question := strings.ReplaceAll(w.question(), "\r", "")
	for _, want := range []string{"a passkey of grace to apply the work of the task t1", "stage work, applied", "changes  4 files"} {
		if !strings.Contains(question, want) {
			t.Errorf("the terminal shows %q; want %q in it", question, want)
		}
	}
	options := eval[string](b, `document.querySelector("form[data-passkey]").dataset.passkey`)
	b.do(chromedp.Click(`form[data-passkey] button`))
	b.sees("its work is in the working tree")
	w.applied("t1", "passkey")

	w.reviewing(b, "t2") // what was signed for another task's work approves nothing
	b.do(chromedp.Click(`button[data-verb=approve]`))
	b.sees("Use your passkey")
	b.signsAfter(fmt.Sprintf(`form.dataset.passkey = %q`, options))
	b.sees("Nothing was decided", "not of this decision")
}

// chooses chooses an option of the field that has the focus, by its first letters.
func (b *tab) chooses(letters, value string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(letters))
	b.until(fmt.Sprintf(`document.activeElement.value === %q`, value))
}

// signs reaches the button of the passkey by Tab, and presses it.
func (b *tab) signs(what string) {
	b.t.Helper()
	b.sees("Use your passkey", what)
	b.tabTo(`form[data-passkey] button`)
	b.do(chromedp.KeyEvent(kb.Enter))
}

func TestAWorktreeTaskGoesFromTheFormToTheWorkingTreeByKeyboardAndPasskey(t *testing.T) {
	slowtest.Require(t, "it presses Tab many times")
	b, w := coderWithPasskey(t, "approval: {self: confirm}\n")
	b.visit("/tasks")
	b.tabTo(`a[href="/send"]`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.until(`location.pathname === "/send"`)
	b.tabTo(`textarea[name=words]`)
	b.do(chromedp.KeyEvent("greet better"))
	b.tabTo(`select[name=agent]`)
	b.chooses("cod", "coder")
	b.tabTo(`input[name=worktree]`)
	b.do(chromedp.KeyEvent(" "))
	b.tabTo(`select[name=approval]`)
	b.chooses("before its", "post")
	b.tabTo(`form[action="/send"] button`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.signs("greet better")
	b.sees("It was sent")
	b.tabTo(`a.button.main`)
	b.do(chromedp.KeyEvent(kb.Enter))

	b.sees("You are asked to agree to exactly this", "- before")
	b.do(chromedp.KeyEvent("a"))
	b.signs("It signs that you approve")
	b.sees("Approved")
	b.tabTo(`a.button.main`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.until(`!!document.querySelector("button[data-verb=apply]")`)
	b.tabTo(`button[data-verb=apply]`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.signs("It signs that you apply the work of the task")
	b.sees("its work is in the working tree")
	w.applied(w.tasksOf("coder")[0].ID, "passkey")
}
