package runnerssh

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// End ends the credentials on the standard input of mailboxd runner.
const End = "END\n"

// remoteCommand is what ssh runs on the other machine; the port is a number. It looks where programs of
// a user are that a shell without a login doesn't find.
const remoteCommand = `sh -c 'PATH="$PATH:/usr/local/bin:$HOME/.local/bin:$HOME/go/bin" exec mailboxd runner ` +
	`--connect tls://127.0.0.1:%d --credentials -'`

// ports are those of the other machine that a connection may take: those below are of services, and those
// above are given to clients.
const leastPort, mostPort = 20_000, 32_000

func randomPort() int { return leastPort + rand.IntN(mostPort-leastPort) }

// An exitError is how an ssh ended, with the last lines that it wrote.
type exitError struct {
	err    error
	stderr string
}

// Error is the last line, or how the process ended. Lines of the runner's log are no reason.
func (e *exitError) Error() string {
	lines := slices.DeleteFunc(strings.Split(e.stderr, "\n"), func(line string) bool { return strings.HasPrefix(line, `{"level":`) })
	return cmp.Or(lastLine(strings.Join(lines, "\n")), e.err.Error())
}

// Unwrap gives how the process ended.
func (e *exitError) Unwrap() error { return e.err }

// connect runs one ssh, until it ends.
func (l *Links) connect(ctx context.Context, r Runner) error {
	credentials, err := os.ReadFile(l.credentialsOf(r.Name))
	if err != nil {
		return fmt.Errorf("read the credentials of the runner: %w; restart the daemon", err)
	}
	port := l.opts.port()
	cmd := exec.CommandContext(ctx, l.opts.ssh, "-T", "-o", "BatchMode=yes", "-o", "ExitOnForwardFailure=yes",
		"-o", "ControlMaster=no", "-o", "ControlPath=none", // or the forwarded port, and the connection, may outlast this ssh
		"-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3", "-o", "ConnectTimeout=15",
		"-R", fmt.Sprintf("127.0.0.1:%d:127.0.0.1:%s", port, l.hub.port), "--", r.Destination, fmt.Sprintf(remoteCommand, port))
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	cmd.Env = append(os.Environ(), "LC_ALL=C") // what it says is understood below
	stderr := &tail{}
	cmd.Stderr = stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("start ssh: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start ssh: %w", err)
	}
	lives := time.AfterFunc(steady, func() { l.set(r.Name, Failure{}) })
	_, _ = input.Write(append(bytes.TrimRight(credentials, "\n"), "\n"+End...)) // an ssh that has ended says why
	err = cmd.Wait()
	lives.Stop()
	return &exitError{err: cmp.Or(err, errors.New("mailboxd runner ended there")), stderr: stderr.String()}
}

// A tail keeps the last bytes that are written.
type tail struct{ text []byte }

const keptBytes = 4 << 10

// Write keeps the end of what is written.
func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	if extra := len(t.text) - keptBytes; extra > 0 {
		t.text = t.text[extra:]
	}
	return len(p), nil
}

// String returns what is kept.
func (t *tail) String() string { return string(t.text) }

// lastLine is the last line of a text that says something.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
