package main

import (
	"bytes"
	"context"
	"path/filepath"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/client"
	"mailboxd/internal/config"
	"mailboxd/internal/exit"
	"mailboxd/internal/runner"
	"mailboxd/internal/task"
	"mailboxd/internal/term"
)

// latestWord says where a task is and the last that its agent wrote, in one line.
func latestWord(ctx context.Context, cfg config.Config, id envelope.ID) string {
	said, served := "", false
	err := atFreshDesk(ctx, cfg, func(ctx context.Context, d *desk) (err error) {
		served = d.served
		said, err = d.word(ctx, id)
		return err
	})
	switch {
	case exit.CodeOf(err) == exit.NoTask:
		return notTaken(served)
	case err != nil:
		return term.OneLine(err.Error())
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
func isServed(ctx context.Context, cfg config.Config) (served bool) {
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
	return term.OneLine(string(text[bytes.LastIndexAny(text, "\r\n")+1:])), info.ModTime()
}
