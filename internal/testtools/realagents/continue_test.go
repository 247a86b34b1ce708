package realagents_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mailboxd/internal/testtools/realagents/fakemodel"
)

// repository makes a repository of the person, whose directory is that of the agent.
func (b *box) repository() string {
	b.t.Helper()
	dir := filepath.Join(b.home, "project")
	b.write("project/README.md", "read me\n")
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"commit", "-q", "-m", "start"}} {
		cmd := exec.Command("git", append([]string{"-c", "user.name=u", "-c", "user.email=u@example.com"}, args...)...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			b.t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	text := b.read(configFile)
	cwd := regexp.MustCompile(`cwd: [^,}]+`)
	if !strings.Contains(text, "permission: read_only") || !cwd.MatchString(text) {
		b.t.Fatalf("init proposed something else outside of a repository:\n%s", text)
	}
	text = strings.Replace(text, "permission: read_only", "permission: edit", 1)
	b.write(configFile, cwd.ReplaceAllString(text, "worktree: true, cwd: "+dir))
	return dir
}

// lastAsked returns all texts of the last request to the model.
func (b *box) lastAsked() string {
	b.t.Helper()
	all := b.model.Requests()
	if len(all) == 0 {
		b.t.Fatal("the model was asked nothing")
	}
	var text strings.Builder
	for _, m := range all[len(all)-1].Messages {
		text.WriteString(m.Role + ": " + m.Text + "\n")
	}
	return text.String()
}

// restart stops the daemon and starts another one.
func (b *box) restart() {
	b.t.Helper()
	_ = b.daemon.Process.Kill()
	_ = b.daemon.Wait() // its exit code is of no interest here
	b.serve()
}

func TestAskGoesOnInTheSessionAndWorktreeOfATask(t *testing.T) {
	forEach(t, func(t *testing.T, b *box) {
		b.plain()
		dir := b.repository()
		b.serve()
		b.model.Script(b.writeCall(), fakemodel.Text("I wrote hello.txt."), fakemodel.Text("It says hi."), fakemodel.Text("In English."))
		if first := b.ask("Write a greeting."); first.Status != "ok" {
			t.Fatalf("result = %+v", first)
		}
		b.must(b.mailboxd(b.work, "apply", b.lastID()))
		if _, err := os.Stat(filepath.Join(dir, "hello.txt")); err != nil {
			t.Errorf("the work was not applied: %v", err)
		}
		b.mustGoOn("What does it say?", "Write a greeting.", "I wrote hello.txt.")
		if s := b.mailboxd(b.work, "diff", "last"); s.out != "" {
			t.Errorf("diff printed %s; want nothing that was applied before", s.out)
		}
		b.restart()
		b.mustGoOn("In which language?", "I wrote hello.txt.", "It says hi.")
		b.loseSession()
		before := len(b.model.Requests())
		s := b.mailboxd(b.work, "ask", "--continue", "last", "And now?", "--wait")
		if s.code != 4 || !strings.Contains(s.err, "session") || !strings.Contains(s.err, "is gone") {
			t.Errorf("without its session, ask printed %q and ended with %d; want that it is gone", s.err, s.code)
		}
		if after := len(b.model.Requests()); after != before {
			t.Errorf("the model was asked %d times more; want none", after-before)
		}
	})
}

// lastID returns the id of the newest task.
func (b *box) lastID() string {
	b.t.Helper()
	s := b.must(b.mailboxd(b.work, "show", "last", "--json"))
	found := regexp.MustCompile(`"task_id": *"([^"]+)"`).FindStringSubmatch(s.out)
	if found == nil {
		b.t.Fatalf("show printed no id:\n%s", s.out)
	}
	return found[1]
}

// mustGoOn asks on in the last session, and looks for what was said there before.
func (b *box) mustGoOn(words string, before ...string) {
	b.t.Helper()
	s := b.mailboxd(b.work, "ask", "--continue", "last", words, "--wait", "--json")
	r := b.resultOf(s)
	if r.Status != "ok" || r.Cost.Tokens != 154 {
		b.t.Errorf("the next question: result = %+v; want ok and 154 tokens\n%s", r, s.err)
	}
	asked := b.lastAsked()
	for _, want := range append(before, words) {
		if !strings.Contains(asked, want) {
			b.t.Errorf("the model was asked\n%s\nwithout %q", asked, want)
		}
	}
}

// loseSession removes the sessions of the program.
func (b *box) loseSession() {
	b.t.Helper()
	for _, dir := range []string{".claude/projects", ".codex/sessions", ".gemini/tmp", ".local/share/opencode"} {
		if err := os.RemoveAll(filepath.Join(b.home, dir)); err != nil {
			b.t.Fatal(err)
		}
	}
}
