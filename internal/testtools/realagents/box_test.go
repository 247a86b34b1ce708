package realagents_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/internal/testtools/realagents/fakemodel"
)

// A box is a person's home directory with one installed program, a mailbox that
// mailboxd init made there, and a fake model server.
type box struct {
	t       testing.TB
	program program
	home    string
	work    string // a directory of the person, without a repository
	env     []string
	model   *fakemodel.Server
	daemon  *exec.Cmd
	log     *logWriter // of the daemon
}

// patience is how long a test waits for a command. The programs are slow on a busy machine.
const patience = 90 * time.Second

// newBox makes a box. The daemon isn't started yet.
func newBox(t testing.TB, p program) *box {
	t.Helper()
	return newBoxWith(t, p, fakemodel.Start)
}

// newBoxWith makes a box with a model server, and prepares its directory before init looks at it.
func newBoxWith(t testing.TB, p program, start func() (*fakemodel.Server, error), prepare ...func(*box)) *box {
	t.Helper()
	b := emptyBox(t, p, start)
	for _, do := range prepare {
		do(b)
	}
	b.must(b.mailboxd(b.work, "init", "--yes"))
	return b
}

// emptyBox makes a box without a mailbox.
func emptyBox(t testing.TB, p program, start func() (*fakemodel.Server, error)) *box {
	t.Helper()
	needPrograms(t)
	home, err := os.MkdirTemp("/var/tmp", "ra-") // t.TempDir is too long for a socket, and Codex wants no home in /tmp
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("the home directory is kept:", home)
		} else if err := os.RemoveAll(home); err != nil {
			t.Log(err)
		}
	})
	model, err := start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(model.Close)
	b := &box{t: t, program: p, home: home, work: filepath.Join(home, "work"), model: model}
	bin := filepath.Join(home, "bin")
	for _, dir := range []string{bin, b.work} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(programs(), "node_modules", ".bin", p.name), filepath.Join(bin, p.name)); err != nil {
		t.Fatal(err)
	}
	b.env = []string{"HOME=" + home, "PATH=" + bin + ":/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "USER=somebody"}
	b.env = append(b.env, p.login(b)...)
	return b
}

// write writes a file below the home directory.
func (b *box) write(name, text string) {
	b.t.Helper()
	path := filepath.Join(b.home, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func (b *box) read(name string) string {
	b.t.Helper()
	text, err := os.ReadFile(filepath.Join(b.home, name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}

const configFile = ".config/mailboxd/config.yaml"

// plain takes the agent out of the sandbox that init proposed, if this machine has one.
func (b *box) plain() {
	b.t.Helper()
	var lines []string
	for line := range strings.SplitSeq(b.read(configFile), "\n") {
		if !strings.HasPrefix(line, "    sandbox:") {
			lines = append(lines, line)
		}
	}
	b.write(configFile, strings.Join(lines, "\n"))
}

// A said is what a command printed, and its exit code.
type said struct {
	out, err string
	code     int
}

// mailboxd runs a command of mailboxd in a directory.
func (b *box) mailboxd(dir string, args ...string) said {
	b.t.Helper()
	return b.run(dir, os.Getenv(daemonVariable), args...)
}

// run runs a program in a directory.
func (b *box) run(dir, program string, args ...string) said {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = dir, b.env
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		b.t.Fatalf("%s %q: %v", program, args, err)
	}
	s := said{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
	if ctx.Err() != nil {
		b.t.Fatalf("%s %q was not done after %v; it printed:\n%s%s", program, args, patience, s.out, s.err)
	}
	return s
}

// must fails the test if a command failed.
func (b *box) must(s said) said {
	b.t.Helper()
	if s.code != 0 {
		b.t.Fatalf("exit code %d\n%s%s", s.code, s.out, s.err)
	}
	return s
}

// serve starts the daemon. It is stopped at the end of the test.
func (b *box) serve() {
	b.t.Helper()
	b.daemon = exec.Command(os.Getenv(daemonVariable), "serve")
	b.daemon.Dir, b.daemon.Env = b.work, b.env
	b.log = &logWriter{ready: make(chan struct{})}
	b.daemon.Stdout, b.daemon.Stderr = b.log, b.log
	if err := b.daemon.Start(); err != nil {
		b.t.Fatal(err)
	}
	select {
	case <-b.log.ready:
	case <-time.After(patience):
		b.t.Fatalf("mailboxd did not serve after %v:\n%s", patience, b.log)
	}
	b.t.Cleanup(func() {
		if err := b.daemon.Process.Signal(syscall.SIGTERM); err == nil {
			_ = b.daemon.Wait() // its exit code is of no interest here
		}
		if b.t.Failed() {
			b.t.Logf("the log of the daemon:\n%s", b.log)
		}
	})
}

// A logWriter keeps the log of a daemon, and says when the daemon serves.
type logWriter struct {
	ready chan struct{}

	mu   sync.Mutex // guards text
	text bytes.Buffer
}

// Write keeps a part of the log.
func (w *logWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := bytes.Contains(w.text.Bytes(), []byte(`"serving"`))
	w.text.Write(p)
	if !before && bytes.Contains(w.text.Bytes(), []byte(`"serving"`)) {
		close(w.ready)
	}
	return len(p), nil
}

// String returns the log so far.
func (w *logWriter) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// A result is what the tests read of a result.
type result struct {
	ID     string `json:"task_id"`
	Status string `json:"status"`
	Output struct {
		Summary string         `json:"summary"`
		Session string         `json:"session_id"`
		Denied  jsontext.Value `json:"denied"`

		Enforcement map[string]string `json:"enforcement"`
	} `json:"output"`
	Error struct {
		Kind    string `json:"kind"`
		Message string `json:"message"`
	} `json:"error"`
	Cost struct {
		Tokens int64 `json:"tokens"`
		Cents  int64 `json:"usd_cents"`
	} `json:"cost_used"`
	Review struct {
		Required bool   `json:"required"`
		Reason   string `json:"reason"`
	} `json:"needs_review"`
}

// ask asks the agent, waits for its answer, and returns the result.
func (b *box) ask(words string, flags ...string) result {
	b.t.Helper()
	s := b.mailboxd(b.work, append([]string{"ask", b.program.name, words, "--wait", "--json"}, flags...)...)
	return b.resultOf(s)
}

// resultOf reads the result that ask printed.
func (b *box) resultOf(s said) (r result) {
	b.t.Helper()
	if err := json.Unmarshal([]byte(s.out), &r); err != nil {
		b.t.Fatalf("ask printed no result: %v\nexit code %d\n%s%s", err, s.code, s.out, s.err)
	}
	return r
}

// result returns the result of the only task.
func (b *box) result() (r result) {
	b.t.Helper()
	if err := json.Unmarshal([]byte(b.lastResult()), &r); err != nil {
		b.t.Fatal(err)
	}
	return r
}

// lastResult returns the only result file.
func (b *box) lastResult() string {
	b.t.Helper()
	found, err := filepath.Glob(filepath.Join(b.home, ".local/state/ainl_agents/results/*.json"))
	if err != nil || len(found) != 1 {
		b.t.Fatalf("results are %q, %v; want one", found, err)
	}
	text, err := os.ReadFile(found[0])
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}
