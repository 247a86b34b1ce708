package realagents_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"mailboxd/internal/testtools/realagents/fakemodel"
)

// A typist is a person at a pseudo-terminal with a shell.
type typist struct {
	t        *testing.T
	terminal *os.File
	seen     []byte // all that the terminal showed
	typed    int    // commands, without answers to questions
}

const shellPrompt = "$ "

// question is the end of a question of init.
var question = regexp.MustCompile(`\][: ]+$`)

func newTypist(t *testing.T, b *box) *typist {
	t.Helper()
	person, program := openTerminal(t, 40, 110)
	shell := exec.Command("bash", "--norc", "--noprofile", "--noediting", "+m", "-i")
	shell.Dir, shell.Env = b.work, append(b.env, "PS1="+shellPrompt, "TERM=dumb")
	shell.Stdin, shell.Stdout, shell.Stderr = program, program, program
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err := shell.Start()
	program.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		fmt.Fprintln(person, "kill $!; exit")
		_ = shell.Wait() // its exit code is that of the last command
		person.Close()
	})
	p := &typist{t: t, terminal: person}
	p.await()
	return p
}

// await reads until the shell or a question waits for a line.
func (p *typist) await() {
	p.t.Helper()
	if err := p.terminal.SetReadDeadline(time.Now().Add(patience)); err != nil {
		p.t.Fatal(err)
	}
	for {
		chunk := make([]byte, 4096)
		n, err := p.terminal.Read(chunk)
		p.seen = append(p.seen, chunk[:n]...)
		if err != nil {
			p.t.Fatalf("%v; the terminal showed\n%s", err, p.seen)
		}
		line := p.seen[bytes.LastIndexByte(p.seen, '\n')+1:]
		if string(line) == shellPrompt || question.Match(line) {
			return
		}
	}
}

// enter types a line.
func (p *typist) enter(line string) {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.terminal, line); err != nil {
		p.t.Fatal(err)
	}
	p.await()
}

// do types a command, and takes the defaults of its questions.
func (p *typist) do(command string) {
	p.t.Helper()
	p.typed++
	p.enter(command)
	for !bytes.HasSuffix(p.seen, []byte("\n"+shellPrompt)) {
		p.enter("")
	}
}

// readmeLines are the first commands of README.md.
func readmeLines(t *testing.T) (lines []string) {
	t.Helper()
	text, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(text), "```console\n")
	block, _, _ = strings.Cut(block, "```")
	for line := range strings.Lines(block) {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			command, _, _ = strings.Cut(command, "  #")
			lines = append(lines, strings.TrimSpace(command))
		}
	}
	return lines
}

func TestANewcomerHasAnAnswerAfterTheLinesOfTheReadme(t *testing.T) {
	needPrograms(t)
	b := emptyBox(t, all[0], fakemodel.Start)
	if err := os.Symlink(os.Getenv(daemonVariable), filepath.Join(b.home, "bin", "mailboxd")); err != nil {
		t.Fatal(err)
	}
	b.write("work/clock.go", "package clock\n")
	b.write(".gitconfig", "[user]\n\tname = Somebody\n\temail = somebody@example.com\n")
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"commit", "-qm", "Add a clock"}} {
		b.must(b.run(b.work, "git", args...))
	}
	const answer = "TestClock compares local time with UTC, so it fails outside of UTC."
	b.model.Script(fakemodel.Text(answer))
	lines := readmeLines(t)
	p := newTypist(t, b)
	for _, line := range lines {
		p.do(line)
		if strings.HasPrefix(line, "mailboxd serve") {
			b.awaitServing("serve.log") // a person types slower than a busy machine starts programs
		}
	}
	transcript := p.transcript(b)
	if len(lines) != 3 || p.typed > 5 || !strings.Contains(transcript, "\n"+answer+"\n") {
		t.Fatalf("after %d commands the terminal shows\n%s\nwant the answer", p.typed, transcript)
	}
	checkTranscript(t, transcript)
}

// awaitServing returns when the daemon with a log serves. The shell may make the log a moment later.
func (b *box) awaitServing(log string) {
	b.t.Helper()
	var text []byte
	for end := time.Now().Add(patience); !strings.Contains(string(text), `"serving"`); {
		if time.Now().After(end) {
			b.t.Fatalf("mailboxd does not serve:\n%s", text)
		}
		b.mailboxd(b.work, "ps")
		var err error
		if text, err = os.ReadFile(filepath.Join(b.home, log)); err != nil && !os.IsNotExist(err) {
			b.t.Fatal(err)
		}
	}
}

// transcript is what the terminal showed, without what differs between two runs.
func (p *typist) transcript(b *box) string {
	text := strings.NewReplacer("\r\n", "\n", b.home, "~").Replace(string(p.seen))
	for _, change := range []struct{ pattern, with string }{
		{`(?m)^\[1\] \d+$`, "[1] 4242"},
		{`(?m)^task [0-9a-f]+$`, "task 3f2a"},
		{`(?m)^[0-9a-f]+  ok  (.*)  [0-9.]+(m?s)$`, "3f2a  ok  $1  2s"},
		{`(?m)^3f2a  ok  (.*)  \d+m[0-9.]+s$`, "3f2a  ok  $1  2s"},
	} {
		text = regexp.MustCompile(change.pattern).ReplaceAllString(text, change.with)
	}
	return strings.TrimSuffix(text, shellPrompt)
}

// checkTranscript compares a transcript with the one in docs/getting-started.md, or writes it there
// with -update.
func checkTranscript(t *testing.T, transcript string) {
	t.Helper()
	const path, begin, end = "../../../docs/getting-started.md", "<!-- made by TestANewcomerHasAnAnswerAfterTheLinesOfTheReadme -->\n```text\n", "```\n"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	shown, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for the transcript", path)
	}
	if *update {
		if err := os.WriteFile(path, []byte(before+begin+transcript+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if shown != transcript {
		t.Errorf("%s shows\n%s\nthe terminal showed\n%s\nto write it: "+
			"go test ./internal/testtools/realagents -run Newcomer -update", path, shown, transcript)
	}
}
