package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// terminals are the terminals of the golden screens.
var terminals = []struct {
	name    string
	columns uint16
	env     string
}{
	{"80", 80, "NO_COLOR=1"}, {"80-colour", 80, "NO_COLOR="}, {"120", 120, "NO_COLOR=1"}, {"120-colour", 120, "NO_COLOR="},
}

// screenCommands are the commands of the golden screens.
var screenCommands = map[string][]string{
	"help": {"--help"}, "help-send": {"send", "--help"}, "ps": {"ps"}, "logs": {"logs", "fix-clock"}, "doctor": {"doctor"},
	"show-held": {"show", "deploy-api"}, "show-failed": {"show", "nightly-report"}, "show-done": {"show", "fix-clock"},
}

// TestScreensOfATerminal runs the program at pseudo-terminals and compares what a person
// sees, every colour included.
func TestScreensOfATerminal(t *testing.T) {
	home, env := screenHome(t)
	for name, args := range screenCommands {
		for _, terminal := range terminals {
			cmd := exec.Command("mailboxd", args...)
			cmd.Dir, cmd.Env = home, append(slices.Clone(env), "TERM=xterm-256color", terminal.env)
			text := atTerminal(t, cmd, terminal.columns)
			if name == "doctor" {
				text = withoutMachine(text)
			}
			golden(t, "screen."+name+"."+terminal.name, anyTime(text, home))
		}
	}
}

// screenHome makes a home with tasks that are held, failed and done. Its path is always
// equally long, since lines are broken where the screen ends.
func screenHome(t *testing.T) (home string, env []string) {
	t.Helper()
	home = fmt.Sprintf("/tmp/ada-%06x", rand.IntN(1<<24))
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	env = visitor(t, home)
	for name, text := range map[string]string{
		"bin/claude": screenClaude, "bin/deploy": "#!/bin/sh\necho deployed\n", "bin/report": "#!/bin/sh\necho 'cannot reach the archive' >&2\nexit 3\n",
		".config/mailboxd/deploy.json": `{"schema_version": "1.0", "agent_id": "deploy", "role_types": ["executor"], "requires_human_approval": {"default": true}}`,
		".config/mailboxd/config.yaml": fmt.Sprintf(screenConfig, home),
	} {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range []string{
		"send --id fix-clock --agent claude --type fix --requester ada --label area=time --description|Fix the flaky test of the clock",
		"send --id nightly-report --agent report --type report --requester ada --description|Write the report of the night",
		"send --id deploy-api --agent deploy --type deploy --requester nightly --description|Deploy the API to production",
		"serve --once",
	} {
		flags, words, described := strings.Cut(line, "|")
		args := strings.Fields(flags)
		if described {
			args = append(args, words)
		}
		cmd := exec.Command("mailboxd", args...)
		cmd.Dir, cmd.Env = home, env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("mailboxd %s: %v\n%s", line, err, out)
		}
	}
	return home, env
}

const screenConfig = `root: %[1]s/mailbox
policy: {approval_ttl: 0s}
agents:
  - {id: claude, profile: claude, exec: {command: [%[1]s/bin/claude]}}
  - {id: deploy, manifest: deploy.json, exec: {command: [%[1]s/bin/deploy], output: text}}
  - {id: report, exec: {command: [%[1]s/bin/report], output: text}}
`

// screenClaude prints what Claude Code prints about a small task.
const screenClaude = `#!/bin/sh
[ "$1" = --version ] && { echo '2.0.0 (Claude Code)'; exit 0; }
cat >/dev/null
cat <<'END'
{"type":"system","subtype":"init","session_id":"s-1","tools":["Bash","Edit"]}
{"type":"assistant","message":{"content":[{"type":"text","text":"I run the test first, to see how it fails and on which line."},{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"go test ./clock"}}]},"session_id":"s-1"}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":"FAIL: TestClock"}]},"session_id":"s-1"}
{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t2","name":"Edit","input":{"file_path":"clock/clock.go"}}]},"session_id":"s-1"}
{"type":"result","subtype":"success","is_error":false,"result":"TestClock compared local time with UTC. It compares UTC with UTC now, and passes in every zone.","session_id":"s-1","total_cost_usd":0.02,"usage":{"input_tokens":1200,"output_tokens":340}}
END
`

// atTerminal runs a command at a pseudo-terminal and returns what it prints there.
func atTerminal(t *testing.T, cmd *exec.Cmd, columns uint16) string {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminal here: %v", err)
	}
	defer person.Close()
	number, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(person.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: columns})
	}
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
	var screen bytes.Buffer
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = io.Copy(&screen, person) }) // ends with EIO when nobody has the other end
	_ = cmd.Run()                                          // doctor exits with 1 where the machine has a problem
	program.Close()
	reading.Wait()
	return strings.ReplaceAll(screen.String(), "\r\n", "\n")
}

// machineChecks are the checks of doctor whose findings depend on the machine.
var machineChecks = regexp.MustCompile(`^[\x1b\[\dm]*(ok|warn|bad)[\x1b\[\dm ]*(disk|inotify|clock|path|service|linger|tmp|approvers|sandbox|environment|user)\b`)

// withoutMachine leaves out what doctor says of the machine.
func withoutMachine(text string) string {
	var kept []string
	machine := false
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimLeft(line, "\x1b[0123456789m"), "  ") {
			machine = machineChecks.MatchString(line)
		}
		if !machine {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

// anyTime replaces ids, times and paths with others of the same width.
func anyTime(text, home string) string {
	text = strings.ReplaceAll(text, home, "/tmp/ada-000000")
	for _, v := range []struct{ pattern, instead string }{
		{`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`, "2026-03-09 20:00:00"},
		{`\b\d\ds  `, "1s   "}, // in a column
		{`\b\d+(\.\d+)?(ms|s)\b`, "1s"},
		{`after 1s.*…`, "after 1s, …"},       // the time changes where the line is cut
		{`\d+ ok, \d+ warn`, "9 ok, 1 warn"}, // the machine is among them
		{`tmp-ada-[0-9a-f]{6}`, "tmp-ada-000000"},
		{`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`, "01a1fdb5-ac39-7484-993f-283a3072cf56"},
		{`mailbox-[0-9a-f]{8}`, "mailbox-00000000"},
		{`process \d+`, "process 42"},
		{`digest   [0-9a-f]{16}\b`, "digest   0123456789abcdef"},
		{`\x1b`, "ESC"},
	} {
		text = regexp.MustCompile(v.pattern).ReplaceAllString(text, v.instead)
	}
	return text
}
