package main

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"mailboxd/envelope"
	"mailboxd/internal/client"
	"mailboxd/internal/runner"
	"mailboxd/internal/task"
)

// spinning shows a word on the terminal while work lasts, and asks for it again
// and again. Where output does not go to a terminal it shows nothing.
func spinning[T any](cmd *cobra.Command, word func(context.Context) string, work func() (T, error)) (T, error) {
	s := screenOf(cmd.ErrOrStderr())
	if !s.redraws || !screenOf(cmd.OutOrStdout()).redraws {
		return work()
	}
	ctx, done := context.WithCancel(cmd.Context())
	var spinner sync.WaitGroup
	spinner.Go(func() { spin(ctx, s, word) })
	result, err := work()
	done()
	spinner.Wait()
	return result, err
}

// How often the spinner turns, and after how many turns it asks again.
const (
	spinnerTurn = 100 * time.Millisecond
	askEvery    = 5
)

var spinnerFrames = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

// spin draws one line over itself until ctx ends, and takes it away then.
func spin(ctx context.Context, s screen, word func(context.Context) string) {
	turns := time.NewTicker(spinnerTurn)
	defer turns.Stop()
	defer fmt.Fprint(s, "\r\x1b[K")
	began, said := time.Now(), ""
	for turn := 0; ; turn++ {
		if turn%askEvery == 0 {
			said = word(ctx)
		}
		fmt.Fprint(s, "\r"+spinnerLine(s, turn, time.Since(began), said)+"\x1b[K")
		select {
		case <-ctx.Done():
			return
		case <-turns.C:
		}
	}
}

// spinnerLine leaves the last column free: a full line would wrap.
func spinnerLine(s screen, turn int, elapsed time.Duration, said string) string {
	frame := string(spinnerFrames[turn%len(spinnerFrames)])
	return s.paint(blue, frame) + " " + cut(age(elapsed)+"  "+said, s.columns-wide(frame)-2)
}

// latestWord says where a task is and the last that its agent wrote, in one line.
func latestWord(ctx context.Context, cfg config, id envelope.ID) string {
	said, served := "", false
	err := atFreshDesk(ctx, cfg, func(ctx context.Context, d *desk) (err error) {
		served = d.served
		said, err = d.word(ctx, id)
		return err
	})
	switch {
	case exitCode(err) == exitNoTask:
		return notTaken(served)
	case err != nil:
		return flat(err.Error())
	}
	return said
}

// notTaken says that the daemon has not read a task, if there is a daemon.
func notTaken(served bool) string {
	if served {
		return "not taken yet"
	}
	return "not taken yet; is mailboxd serve running?"
}

// isServed reports whether a daemon serves the mailbox now.
func isServed(ctx context.Context, cfg config) (served bool) {
	_ = atFreshDesk(ctx, cfg, func(_ context.Context, d *desk) error { // without a desk nobody can tell
		served = d.served
		return nil
	})
	return served
}

// word says where a task is and the last line of its agent, or what it waits for.
func (d *desk) word(ctx context.Context, id envelope.ID) (string, error) {
	found, err := d.file(ctx, id)
	if err != nil {
		return "", err
	}
	file := &caseFile{found}
	around, err := d.around(ctx, []client.Task{file.Task}, time.Now())
	if err != nil {
		return "", err
	}
	if line := file.lastLine(); line != "" && file.Task.State == task.Running {
		return stateOf(file.Task) + "  " + line, nil
	}
	return stateOf(file.Task) + "  waits for " + around.wait(file.Task), nil
}

// lastLine is the last line that the agent wrote, safe to show.
func (f *caseFile) lastLine() string {
	if len(f.Runs) == 0 {
		return ""
	}
	dir := f.Runs[len(f.Runs)-1].Dir
	line, at := lastLineOf(filepath.Join(dir, runner.StdoutFile))
	if other, later := lastLineOf(filepath.Join(dir, runner.StderrFile)); later.After(at) {
		line = other
	}
	return line
}

// longestLine is how much of the end of a file is looked at for its last line.
const longestLine = 4 << 10

// lastLineOf returns the last line of a file that says something, and when it
// was written; nothing for a file that cannot be read.
func lastLineOf(path string) (string, time.Time) {
	file, err := openRegular(path)
	if err != nil {
		return "", time.Time{}
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", time.Time{}
	}
	text := make([]byte, min(info.Size(), longestLine))
	n, err := file.ReadAt(text, max(0, info.Size()-longestLine))
	if err != nil && n == 0 {
		return "", time.Time{}
	}
	text = bytes.TrimSpace(text[:n])
	if len(text) == 0 {
		return "", time.Time{}
	}
	return flat(string(text[bytes.LastIndexAny(text, "\r\n")+1:])), info.ModTime()
}
