package reader

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/envelope"
	"mailboxd/internal/client"
	"mailboxd/internal/exit"
	"mailboxd/internal/runner"
	"mailboxd/internal/task"
	"mailboxd/internal/term"
	"mailboxd/internal/view"
)

// Progress describes in a line where a task is, with the last line that its agent wrote.
func Progress(ctx context.Context, at Location, id envelope.ID) string {
	said, served := "", false
	err := at.Read(ctx, func(ctx context.Context, r *Reader) (err error) {
		served = r.served
		said, err = r.progress(ctx, id)
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

// notTaken says that the daemon has not taken a task, and whether one serves.
func notTaken(served bool) string {
	if served {
		return "not taken yet"
	}
	return "not taken yet; is mailboxd serve running?"
}

// isServed reports whether a daemon serves the mailbox.
func isServed(ctx context.Context, at Location) (served bool) {
	_ = at.Read(ctx, func(_ context.Context, r *Reader) error { // an error means no daemon
		served = r.served
		return nil
	})
	return served
}

// progress is the state of a task with the last line of its agent, or what it waits for.
func (r *Reader) progress(ctx context.Context, id envelope.ID) (string, error) {
	found, err := r.Details(ctx, id)
	if err != nil {
		return "", err
	}
	file := &view.Details{TaskDetails: found}
	around, err := r.WaitContext(ctx, []client.Task{file.Task}, time.Now())
	if err != nil {
		return "", err
	}
	if line := lastLine(file.TaskDetails); line != "" && file.Task.State == task.Running {
		return view.StateOf(file.Task) + "  " + line, nil
	}
	return view.StateOf(file.Task) + "  waits for " + around.Wait(file.Task), nil
}

// lastLine returns the last line that the agent wrote, escaped.
func lastLine(f client.TaskDetails) string {
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

// maxLastLine is how many bytes at the end of a file are read for its last line.
const maxLastLine = 4 << 10

// lastLineOf returns the last line of a file that is not blank, and when it was written;
// nothing for an unreadable file.
func lastLineOf(path string) (string, time.Time) {
	file, err := OpenRegular(path)
	if err != nil {
		return "", time.Time{}
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", time.Time{}
	}
	text := make([]byte, min(info.Size(), maxLastLine))
	n, err := file.ReadAt(text, max(0, info.Size()-maxLastLine))
	if err != nil && n == 0 {
		return "", time.Time{}
	}
	text = bytes.TrimSpace(text[:n])
	if len(text) == 0 {
		return "", time.Time{}
	}
	return term.OneLine(string(text[bytes.LastIndexAny(text, "\r\n")+1:])), info.ModTime()
}

// OpenRegular opens a regular file. It follows no link and never blocks.
func OpenRegular(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("open %s: is not a regular file", path)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}
