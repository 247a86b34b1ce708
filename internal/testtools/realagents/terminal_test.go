package realagents_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

var update = flag.Bool("update", false, "write what people see to testdata/golden")

// A terminal is a pseudo-terminal with a command of mailboxd, and what the command showed there.
type terminal struct {
	t       testing.TB
	cmd     *exec.Cmd
	person  *os.File
	shown   output
	reading sync.WaitGroup
}

// An output is what a command has printed so far. It may be read while the command runs.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(text)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// openTerminal opens a pseudo-terminal: the side of a person, and that of programs.
func openTerminal(t testing.TB, rows, columns uint16) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Skipf("this machine has no pseudo-terminals (/dev/ptmx), at which these tests look: %v", err)
	}
	number, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(program.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns})
	}
	if err != nil {
		t.Fatal(err)
	}
	return person, program
}

// atTerminal starts a command of mailboxd at a terminal of 180 columns.
func (b *box) atTerminal(args ...string) *terminal {
	b.t.Helper()
	person, other := openTerminal(b.t, 50, 180)
	defer other.Close()
	s := &terminal{t: b.t, person: person, cmd: exec.CommandContext(b.t.Context(), os.Getenv(daemonVariable), args...)}
	s.cmd.Dir, s.cmd.Env = b.work, append(b.env, "TERM=xterm-256color", "NO_COLOR=1")
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = other, other, other
	if err := s.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	s.reading.Go(func() { _, _ = io.Copy(&s.shown, person) }) // ends with EIO when nobody has the other end
	return s
}

// end waits for the command, and returns what it showed and its exit code.
func (s *terminal) end() (string, int) {
	s.t.Helper()
	_ = s.cmd.Wait() // the exit code says whether it worked
	s.reading.Wait()
	s.person.Close()
	return strings.ReplaceAll(s.shown.String(), "\r\n", "\n"), s.cmd.ProcessState.ExitCode()
}

// screen returns what a command of mailboxd shows at a terminal. The command must not fail.
func (b *box) screen(args ...string) string {
	b.t.Helper()
	shown, code := b.atTerminal(args...).end()
	if code != 0 {
		b.t.Errorf("mailboxd %q ends with %d:\n%s", args, code, shown)
	}
	return shown
}

// variable are the parts of a screen that differ from run to run, and what takes their place.
var variable = []struct {
	part *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`\r[⠀-⣿] [^\x1b\n]*\x1b\[K`), ""}, // the line that tells the state while a command waits
	{regexp.MustCompile(`\r?\x1b\[[0-9?]*[A-Za-z]`), ""},
	{regexp.MustCompile(`/var/tmp/ra-\d+`), "~"},
	{regexp.MustCompile(`/[\w-]*-ra-\d+-[^/\s]*/`), "/MAILBOX/"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "ADDRESS"},
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\bses_\w+`), "UUID"},
	{regexp.MustCompile(`(?m)^(task |\[task |)[0-9a-f]{3,8}( |$)`), "${1}ID$2"},
	{regexp.MustCompile(`(mailboxd (?:release|accept|reject|approve|deny|apply|diff|show|logs|again)) [0-9a-f]{3,8}\b`), "$1 ID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`), "TIME"},
	{regexp.MustCompile(`tried again (\d+ \w+ )?\d\d:\d\d`), "tried again TIME"},
	{regexp.MustCompile(`next in \d+ s`), "next in N s"},
	{regexp.MustCompile(`(exit -?\d+,? after|SIGTERM \(15\) after|  took)( +)(\d+m)?[\d.]+m?s`), "$1${2}TIME"},
	{regexp.MustCompile(`(?m)(after TIME, (?:until TIME, )?“.{40}).*…$`), "$1…"}, // it is cut sooner the longer the time is
	{regexp.MustCompile(`/tmp/gemini-client-error\S*`), "FILE"},
	{regexp.MustCompile(`(?m)^\s*\[STARTUP\] .*\n`), ""}, // Gemini CLI on a slow machine
	{regexp.MustCompile(`(?m)^(\w*-?\w+)( +held +\w+ +)\d+[smh]( +)`), "ID${2}AGE "},
	{regexp.MustCompile(`(?m)^\d+(\.\d+)?m?s, `), "TIME, "},
	{regexp.MustCompile(`(?m)^(ID  \w+(?: .*)?)  (\d+m)?[\d.]+m?s$`), "$1  TIME"},
	{regexp.MustCompile(`(?m) +$`), ""},
}

// golden compares what a person sees with what one agreed to, which is in a file.
func (b *box) golden(name, got string) {
	b.t.Helper()
	if me, err := user.Current(); err == nil {
		got = regexp.MustCompile(`\b(by|requester) ( ?)`+regexp.QuoteMeta(me.Username)+`\b`).ReplaceAllString(got, "$1 ${2}somebody")
	}
	for _, v := range variable {
		got = v.part.ReplaceAllString(got, v.with)
	}
	path := filepath.Join("testdata/golden", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			b.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		b.t.Fatalf("%v; go test -update makes it", err)
	}
	if got != string(want) {
		b.t.Errorf("the screen is not what was agreed to:\n%s\nwant\n%s", got, want)
	}
}
