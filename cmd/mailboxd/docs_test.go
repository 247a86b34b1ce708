package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"mailboxd/internal/operating/setup"
	"mailboxd/internal/running/host"
	"mailboxd/internal/testtools/slowtest"
)

// Each page is one person at one terminal: its blocks run one after the other
// in an empty home. What it says they print has to be what they print, but for
// ids, times and places, which are somebody else's each time.
func TestEveryCommandOfTheDocsDoesWhatThePageSays(t *testing.T) {
	slowtest.SkipShort(t, "it types every command of the docs")
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		blocks := consoleBlocks(t, filepath.Base(page), string(text))
		if len(blocks) == 0 {
			continue
		}
		t.Run(filepath.Base(page), func(t *testing.T) {
			if _, err := exec.LookPath("git"); err != nil && bytes.Contains(text, []byte("$ git ")) {
				t.Skip("git is not installed")
			}
			if !hasCryptography() && bytes.Contains(text, []byte("sign.py sign")) {
				t.Skip("python3 or its package cryptography is not installed")
			}
			if _, err := host.FindBubblewrap(); err != nil && bytes.Contains(text, []byte("sandbox: {profile: workspace}' ")) {
				t.Skip(err)
			}
			t.Parallel()
			follow(t, filepath.Base(page), blocks)
		})
	}
}

// follow types the commands of a page and compares what each prints.
func follow(t *testing.T, page string, blocks []block) {
	home := t.TempDir()
	v := openVisit(t, home)
	if page == "README.md" { // it shows a coding agent
		if err := os.WriteFile(filepath.Join(home, "bin/claude"), []byte(standInClaude), 0o700); err != nil {
			t.Fatal(err)
		}
		v.once("unset -f claude") // see openVisit
	}
	for _, b := range blocks {
		for _, c := range b.commands {
			got := v.enter(c)
			if c.want != "" && placeless(got, home) != placeless(c.want, home) {
				t.Errorf("line %d: $ %s\nprints:\n%s\nthe page says:\n%s", b.line, c.text, got, c.want)
			}
		}
	}
}

// A visit is a shell that reads what is typed into it.
type visit struct {
	t      *testing.T
	home   string
	keys   io.Writer
	screen *bufio.Reader
	stderr *bytes.Buffer // of what runs in the background
}

// openVisit starts the shell. What is still in its background when the test
// ends is ended too.
func openVisit(t *testing.T, home string) *visit {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Minute) // the end is a clean-up
	input, keys, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	screen, output, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	shell := exec.CommandContext(ctx, "bash", "/dev/fd/3") // what it runs must not read what is typed
	shell.ExtraFiles = []*os.File{input}
	shell.Dir, shell.Env = home, visitor(t, home)
	v := &visit{t: t, home: home, keys: keys, screen: bufio.NewReader(screen), stderr: &bytes.Buffer{}}
	shell.Stdout, shell.Stderr = output, v.stderr
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	shell.Cancel = func() error { return syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) }
	shell.WaitDelay = 5 * time.Second
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	input.Close()
	output.Close()
	fmt.Fprintln(keys, `claude() { [ "$1 $2" = "mcp add" ]; }`) // a function: init would find a program
	t.Cleanup(func() {
		fmt.Fprint(keys, "kill $(jobs -p) 2>/dev/null; wait; exit 0\n")
		keys.Close()
		if err := shell.Wait(); err != nil {
			t.Errorf("the page's shell: %v\nstderr:\n%s", err, v.stderr)
		}
		screen.Close()
		cancel()
	})
	return v
}

const prompt = "=== next command ==="

// looking is a command that changes nothing: who does not see yet what the page
// shows looks again.
var looking = regexp.MustCompile(`^(mailboxd (ps|show|events|budget)|ls|cat)\b`)

// serving and admitting are commands in the background: people type slower than those start.
var (
	serving   = regexp.MustCompile(`^(?:\w+=\S+ |\w+=\$\([^)]*\) )?mailboxd serve\b( --config \S+)?.*&$`)
	admitting = regexp.MustCompile(`^mailboxd gateway\b.* --listen (\S+):(\d+) .*&$`)
)

// often is how many times somebody looks.
const often = 500

// enter types a command and returns what it and its errors print.
func (v *visit) enter(c command) (printed string) {
	v.t.Helper()
	for range often {
		printed = v.once(c.text)
		if c.want == "" || !looking.MatchString(c.text) || placeless(printed, v.home) == placeless(c.want, v.home) {
			break
		}
	}
	if of := serving.FindStringSubmatch(c.text); of != nil {
		v.await(`mailboxd doctor` + of[1] + ` --json | grep '"check":"socket".* answers'`)
	}
	if at := admitting.FindStringSubmatch(c.text); at != nil {
		v.await(fmt.Sprintf(`timeout 60 bash -c 'until : </dev/tcp/%s/%s; do sleep 0.02; done' 2>/dev/null && echo connected`, at[1], at[2]))
	}
	return printed
}

// await types a command until it prints something.
func (v *visit) await(text string) {
	v.t.Helper()
	for range often {
		if v.once(text) != "\n" {
			return
		}
	}
	v.t.Fatalf("$ %s prints nothing; stderr:\n%s", text, v.stderr)
}

// once types a command. The next one finds its exit status in $?.
func (v *visit) once(text string) string {
	v.t.Helper()
	line := "{\n" + text + "\n} 2>&1"
	if strings.HasSuffix(text, "&") {
		line = text // its errors would come between others' output
	}
	fmt.Fprintf(v.keys, "%s\nstatus=$?; echo; echo '%s'; (exit $status)\n", line, prompt)
	var printed strings.Builder
	for {
		line, err := v.screen.ReadString('\n')
		if err != nil {
			v.t.Fatalf("$ %s: %v after:\n%s\nstderr:\n%s", text, err, printed.String(), v.stderr)
		}
		if line == prompt+"\n" {
			return printed.String()
		}
		printed.WriteString(line)
	}
}

// standIns are for the system's own commands that a page names and a test must
// not run.
var standIns = map[string]string{
	"systemctl":   `case "$*" in *ActiveState*) printf 'ActiveState=active\nUnitFileState=enabled\nMainPID=42\n' ;; esac`,
	"loginctl":    `case $1 in enable-linger) touch ~/.lingers ;; disable-linger) rm ~/.lingers ;; *) [ -e ~/.lingers ] && echo yes || echo no ;; esac`,
	"journalctl":  "exit 0",
	"notify-send": "exit 0",
	"curl":        `case $* in *--remote-name-all*) exit 0 ;; esac; PATH=${PATH#*:} exec curl "$@"`, // it reaches only sockets
	"sudo":        "exit 0",
	"go":          `if [ "$1 $2" = "run ./cmd/mailboxd" ]; then shift 2; exec mailboxd "$@"; fi; exit 0`, // CI runs the rest
}

// standInClaude prints what Claude Code prints in the form that its profile reads.
const standInClaude = `#!/bin/sh
[ "$1" = --version ] && { echo '2.0.0 (Claude Code)'; exit 0; }
cat >/dev/null
echo '{"type":"result","subtype":"success","is_error":false,"result":"TestClock compares local time with UTC, so it fails outside of UTC. Call time.Now().UTC().","session_id":"s1","total_cost_usd":0.02,"usage":{"input_tokens":20,"output_tokens":10}}'
`

// visitor is the environment of somebody who comes for the first time.
func visitor(t *testing.T, home string) []string {
	t.Helper()
	program, err := exec.LookPath("mailboxd")
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(home, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, script := range standIns {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if examples, err := filepath.Abs("../../examples"); err != nil {
		t.Fatal(err)
	} else if err := os.Symlink(examples, filepath.Join(home, "examples")); err != nil { // as in a checkout
		t.Fatal(err)
	}
	return []string{
		"PATH=" + strings.Join([]string{bin, filepath.Dir(program), systemTools(t)}, ":"), "HOME=" + home, "LANG=C.UTF-8", "USER=" + loginName(), "SHELL=/bin/bash",
		"XDG_RUNTIME_DIR=" + filepath.Join(home, ".run"),
		"TMPDIR=" + home,
		"GORACE=atexit_sleep_ms=0", // a program built to find races takes a second to end
	}
}

// systemTools are the directories of the system's programs, for somebody who
// has no agent program: init finds those, and the pages show it without.
func systemTools(t *testing.T) string {
	t.Helper()
	dirs := []string{"/usr/local/bin", "/usr/bin", "/bin"}
	for i, dir := range dirs {
		found := func(name string) bool { _, err := os.Stat(filepath.Join(dir, name)); return err == nil }
		if !slices.ContainsFunc(setup.KnownCLIs(), found) {
			continue
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		dirs[i] = t.TempDir()
		for _, entry := range entries {
			if slices.Contains(setup.KnownCLIs(), entry.Name()) {
				continue
			}
			if err := os.Symlink(filepath.Join(dir, entry.Name()), filepath.Join(dirs[i], entry.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
	return strings.Join(dirs, ":")
}

// placeless takes out of an output what is another one each time.
func placeless(text, home string) string {
	text = strings.ReplaceAll(text, home, "~")
	for _, before := range []string{"by ", "requester  "} {
		text = strings.ReplaceAll(text, before+loginName(), before+"ada")
	}
	for _, v := range variable {
		text = v.pattern.ReplaceAllString(text, v.instead)
	}
	return strings.TrimSpace(text)
}

var variable = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`/home/[a-z]+`), "~"},
	{regexp.MustCompile(`replaced-\d{8}T\d{6}Z`), "replaced-TIME"},
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "ID"},
	{regexp.MustCompile(`(?m)^(task )?[0-9a-f]{4,8}(  ok|$)`), "${1}SHORT${2}"},
	{regexp.MustCompile(`(mailboxd/)\S+-[0-9a-f]{8}\b`), "${1}SLUG"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?`), "TIME"},
	{regexp.MustCompile(`\b\d+(\.\d+)?(ms|s|m|h|d)\b`), "DURATION"},
	{regexp.MustCompile(`\b\d\d? [A-Z][a-z]{2} \d\d:\d\d\b`), "DAY"},
	{regexp.MustCompile(`(?m)^(task )?[0-9a-f]{4,12}( +ok )?`), "${1}SHORT${2}"},
	{regexp.MustCompile(`at byte \d+`), "at byte N"},
	{regexp.MustCompile(`((digest|sha256) +)[0-9a-f]{16}\b`), "${1}DIGEST"},
	{regexp.MustCompile(`(?m)^PATH .*`), "PATH"},
	{regexp.MustCompile(`process \d+`), "process N"},
	{regexp.MustCompile(`\b[0-9a-f]{64}\b`), "HASH"},
	{regexp.MustCompile(`[ \t]+`), " "},
}
