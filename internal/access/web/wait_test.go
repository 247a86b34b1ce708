package web_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/reader"
)

// patience is how long tests wait for anything: machines may be slow.
const patience = 2 * time.Minute

// pause is the time between two looks at something that reports no change.
const pause = 30 * time.Millisecond

// log is what the daemon logged.
func (w *world) log() string {
	text, _ := os.ReadFile(filepath.Join(w.dir, "serve.log"))
	return string(text)
}

// stop ends a program that was started.
func (w *world) stop(cmd *exec.Cmd) {
	if cmd.ProcessState == nil {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = w.wait(cmd)
	}
}

// wait waits for the end of a program, and kills one that doesn't end.
func (w *world) wait(cmd *exec.Cmd) error {
	w.t.Helper()
	late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	if !late.Stop() {
		w.t.Errorf("%s did not end; the terminal shows %q, and the log of the daemon:\n%s", cmd, w.shown(), w.log())
	}
	return err
}

// connect connects to the daemon. One that has no time to greet at once counts as down, so it
// is asked again.
func (w *world) connect() (*reader.Reader, *client.Client) {
	w.t.Helper()
	for end := time.Now().Add(patience); ; {
		r, daemon, err := w.at.Connect(w.t.Context())
		if err == nil {
			return r, daemon
		}
		if again := errors.Is(err, client.ErrDown) || reader.IsBusy(err); !again || !time.Now().Before(end) {
			w.t.Fatalf("connect to the daemon: %v; its log:\n%s", err, w.log())
		}
		<-time.After(pause)
	}
}

// do asks the daemon.
func (w *world) do(f func(*client.Client) error) {
	w.t.Helper()
	r, daemon := w.connect()
	if err := errors.Join(f(daemon), r.Close()); err != nil {
		w.t.Fatal(err)
	}
}

// until waits for changes of the ledger until a condition holds.
func (w *world) until(holds func() bool) {
	w.t.Helper()
	ctx, stop := context.WithTimeout(w.t.Context(), patience)
	defer stop()
	held := false
	err := w.at.Watch(ctx, func(context.Context, *reader.Reader) error {
		if held = holds(); held {
			stop()
		}
		return nil
	})
	if !held {
		w.t.Fatalf("the condition never held: %v; the log of the daemon:\n%s", err, w.log())
	}
}

// canStart finds out once whether a browser can be started at all.
var canStart = sync.OnceValues(func() (path, why string) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		found, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		ctx, stop := context.WithTimeout(context.Background(), patience)
		said, err := exec.CommandContext(ctx, found, "--version").CombinedOutput()
		stop()
		if err == nil {
			return found, ""
		}
		why += found + " --version: " + err.Error() + "\n" + string(said)
	}
	return "", why
})
