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

// addVandal adds an agent whose work, file names and answer try to run scripts and to make links.
func (w *world) addVandal() {
	w.t.Helper()
	const attack = `<script>window.hacked=1</script><img src=x onerror=window.hacked=1><a href=javascript:window.hacked=1>x</a></pre></details>`
	script := "#!/bin/sh\n" +
		"cat >main.txt <<'EOF'\n" + attack + "\n[x](javascript:window.hacked=1) https://evil.example/ \u202e\x1b[31m\nEOF\n" +
		"cat >a.go <<'EOF'\npackage main // " + attack + "\nvar s = `" + attack + "`\nEOF\n" +
		"echo x >'\"><script>window.hacked=1<' ; echo x >'javascript:window.hacked=1'\n" +
		"printf 'x\\n' >\"$(printf 'two\\nlines \\033[31m\\342\\200\\256')\"\n" +
		"ln -s 'javascript:window.hacked=1' '<a href=x>'\n" +
		"echo '" + attack + "'\n"
	path := filepath.Join(w.dir, "vandal.sh")
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		w.t.Fatal(err)
	}
	appendTo(w.t, w.config, fmt.Sprintf("  - {id: vandal, exec: {command: [%s], output: text, cwd: %s, worktree: true}}\n", path, filepath.Join(w.dir, "project")))
}

// isHarmless checks that nothing that an agent or a form wrote became an element of the page that is shown.
func (b *tab) isHarmless(where string) {
	b.t.Helper()
	found := eval[string](b, `[
		window.hacked && "a script ran",
		...[...document.querySelectorAll("main img, main script, main iframe, main object," +
			"main a[href^='javascript' i], main a[href*='evil'], main [onerror]")].map((e) => e.outerHTML),
	].filter(Boolean).join("\n")`)
	if found != "" {
		b.t.Errorf("%s: %s", where, found)
	}
	if text := b.text(); strings.ContainsAny(text, "\u202e\x1b") {
		b.t.Errorf("%s: a character that controls how text is shown is on the page", where)
	}
}

func TestADifferenceWithScriptsAndLinksIsText(t *testing.T) {
	b := browser(t)
	w, _ := withCoder(t)
	w.addVandal()
	w.stop(w.daemon)
	w.serve()
	w.sendTo("vandal", "t1")
	w.state("t1", task.Review)
	fmt.Fprintln(w.person)
	b.enter(w.link())
	for _, path := range []string{"/tasks/t1?diff=split", "/tasks/t1", "/runs/t1", "/thread/t1", "/events"} {
		b.visit(path)
		b.sees("t1")
		b.isHarmless(path)
	}
	b.visit("/tasks/t1")
	b.sees("<script>window.hacked=1</script>")
	b.do(chromedp.Click(`.pair .plus`))
	b.until(`document.activeElement.name === "comment"`)
	b.isHarmless("a field below a line")
	b.do(chromedp.SendKeys(`.say textarea`, `<script>window.hacked=1</script><img src=x onerror=window.hacked=1> javascript:window.hacked=1`))
	b.do(chromedp.Click(`details.deny summary`), chromedp.Click(`form[data-comments] button`))
	b.sees("your note is", "onerror")
	b.isHarmless("the number")
	if asked := w.question(); strings.Contains(asked, "\u202e") || strings.Contains(asked, "\x1b[31m") {
		t.Errorf("the terminal shows %q; want escapes", asked)
	}
	fmt.Fprintln(w.person, b.number())
	b.sees("It is done once more as t1-2")
	w.state("t1-2", task.Review)
	for _, path := range []string{"/tasks/t1-2", "/tasks/t1", "/", "/tasks"} {
		b.visit(path)
		b.sees("t1")
		b.isHarmless(path)
	}
}

func TestTheFormsOfADecisionAreThoseOfItsSession(t *testing.T) {
	t.Parallel()
	w, v := withCoder(t)
	w.sendTo("coder", "t1")
	w.finished("coder", "t2")
	w.state("t1", task.Review)
	comments := v.denyForm("t1", "no", "0 plus 1", "x")
	comments.Set("again", "1")
	work := v.workForm("t2")
	for path, form := range map[string]map[string][]string{"/tasks/t1/deny": comments, "/tasks/t2/apply": work, "/tasks/t2/discard": work} {
		for name, change := range map[string]func(*http.Request){
			"another site":   func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
			"another port":   func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
			"another origin": func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") },
			"another host":   func(r *http.Request) { r.Host = "localhost:" + r.URL.Port() },
			"no session":     func(r *http.Request) { r.Header.Set("Cookie", "x=y") },
		} {
			stranger := *v
			if name == "no session" {
				stranger.http = &http.Client{Transport: loopback}
			}
			if status, text := stranger.send(http.MethodPost, path, form, change); status != http.StatusForbidden {
				t.Errorf("%s of %s = %d, %s; want 403", path, name, status, text)
			}
		}
	}
	if strings.Contains(w.shown(), "to confirm") || w.file("main.txt") != "before\n" {
		t.Errorf("the terminal asked, or something was applied: %q", w.shown())
	}
	for _, id := range []envelope.ID{"t1", "t2"} {
		if w.event(id, task.KindWorktreeApplied)+w.event(id, task.KindWorktreeDiscarded) != "" {
			t.Errorf("something was done about the work of %s", id)
		}
	}
}
