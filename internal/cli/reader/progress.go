package reader

import (
	"bytes"
	"context"
	"path/filepath"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/running/transcript"
	"mailboxd/internal/stores/dirtree"
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

// lastLine returns the last line that the agent wrote, escaped. Of a known program, it is the
// last thing that its model said or did, or that its provider is tried again.
func lastLine(f client.TaskDetails) string {
	if len(f.Runs) == 0 {
		return ""
	}
	dir := f.Runs[len(f.Runs)-1].Dir
	if runner.InSetup(dir) {
		return term.OneLine("setup: " + lastOf(endOf(filepath.Join(dir, runner.SetupFile)).tail))
	}
	out := endOf(filepath.Join(dir, runner.StdoutFile))
	errs := endOf(filepath.Join(dir, runner.StderrFile))
	later := errs.written.After(out.written)
	line, known := transcript.Latest(out.head, out.tail)
	switch again := transcript.LatestError(errs.tail); {
	case !known && later:
		line = lastOf(errs.tail)
	case !known:
		line = lastOf(out.tail)
	case later && again != "":
		line = again
	}
	return term.OneLine(line)
}

// maxEnd is how many bytes at the beginning and at the end of a file are read for its last line.
const maxEnd = 64 << 10

// An end is the beginning and the end of a file, which may overlap, and when it was written. The
// zero value is that of an unreadable file.
type end struct {
	head, tail []byte
	written    time.Time
}

func endOf(path string) (e end) {
	file, err := dirtree.OpenRegular(path)
	if err != nil {
		return end{}
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return end{}
	}
	read := func(at int64) []byte {
		text := make([]byte, min(info.Size(), maxEnd))
		n, _ := file.ReadAt(text, at) // a shorter file was cut meanwhile
		return text[:n]
	}
	e = end{head: read(0), written: info.ModTime()}
	e.tail = e.head
	if info.Size() > maxEnd {
		e.tail = read(info.Size() - maxEnd)
	}
	return e
}

// lastOf returns the last line of a text that is not blank.
func lastOf(text []byte) string {
	text = bytes.TrimSpace(text)
	return string(text[bytes.LastIndexAny(text, "\r\n")+1:])
}
