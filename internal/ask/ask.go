// Package ask has what the command ask needs to make a task of a person's words, and to show
// the answer.
package ask

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"mailboxd/envelope"
	"mailboxd/internal/agent"
	"mailboxd/internal/exit"
	"mailboxd/internal/reader"
	"mailboxd/internal/term"
	"mailboxd/internal/view"
)

// Words joins the words of a command line. A single - stands for the text in in, of which at
// most limit bytes are read and one more: the line of the task is too long then.
func Words(in io.Reader, args []string, limit int64) (string, error) {
	words := strings.Join(args, " ")
	if len(args) == 1 && words == "-" {
		text, err := io.ReadAll(io.LimitReader(in, limit+1))
		if err != nil {
			return "", fmt.Errorf("read standard input: %w", err)
		}
		words = string(text)
	}
	if words = strings.TrimSpace(words); words == "" {
		return "", exit.With(exit.Usage, "the words are empty: say what the agent shall do")
	}
	return strings.ToValidUTF8(words, "\uFFFD"), nil
}

// Directory makes a directory absolute, with symbolic links resolved if it exists; "" stays.
func Directory(dir string) string {
	if dir == "" {
		return ""
	}
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved
	}
	return dir
}

// CheckPlace refuses a task in a directory that its agent doesn't allow. The daemon checks
// the directory again, by its own configuration.
func CheckPlace(b agent.Binding, own agent.OwnDirs, request []byte) error {
	t, findings := envelope.DecodeTask(request, envelope.Strict)
	if findings.Refused() {
		return exit.With(exit.Usage, "%s", findings.Refusals())
	}
	agents, err := agent.New([]agent.Binding{b}, agent.Options{Own: own})
	if err != nil {
		return err
	}
	a, _ := agents.Lookup(b.ID)
	if _, wrong := a.Cwd(t); wrong.Refused() {
		return exit.With(exit.Rejected, "%s", wrong[0].Message)
	}
	return nil
}

// A Waiter waits for the answer to a task and prints it: the answer to Out, and everything
// else to Err.
type Waiter struct {
	Out, Err io.Writer
	At       reader.Location
	JSON     bool // print the result as JSON
	Attended bool // somebody reads Err now, so a task that waits for a person is waited for
}

// Await waits until ctx ends, and returns the result. If nobody attends, it ends with
// exit.NeedsPerson once the task waits for a person.
func (w Waiter) Await(ctx context.Context, s reader.Submission) ([]byte, error) {
	short := ShortID(ctx, w.At, s.ID)
	w.note("task " + string(short))
	progress := func(ctx context.Context) string { return reader.Progress(ctx, w.At, s.ID) }
	raw, err := term.Spin(ctx, w.Out, w.Err, progress, func() ([]byte, error) { return s.AwaitNotifying(ctx, w.At, w.held) })
	switch {
	case err != nil:
		return nil, err
	case w.JSON:
		return raw, view.PrintResult(w.Out, raw, true)
	}
	return raw, cmp.Or(view.PrintAnswer(w.Out, raw), view.PrintEnd(w.Err, short, raw), w.printWork(ctx, s.ID, short))
}

// printWork names the commands for what the task changed in a worktree; nothing without one.
func (w Waiter) printWork(ctx context.Context, id, short envelope.ID) error {
	return w.At.Read(ctx, func(ctx context.Context, r *reader.Reader) error {
		file, err := r.Details(ctx, id)
		if err != nil {
			return nil // the answer is printed, and show can name the work later
		}
		return view.PrintWork(term.ScreenOf(w.Err), file, short)
	})
}

// held prints what the task waits for, or ends the wait with it.
func (w Waiter) held(note reader.HeldNote) error {
	if note.NeedsPerson && !w.Attended {
		return exit.With(exit.NeedsPerson, "%s", note.Text)
	}
	w.note(note.Text)
	return nil
}

// note prints a line. On a terminal, it takes the place of the spinner and is broken between
// words.
func (w Waiter) note(text string) {
	s := term.ScreenOf(w.Err)
	if s.Columns > 0 {
		text = term.WrapIndented(text, s.Columns, 2)
	}
	if s.Redraws {
		text = "\r\x1b[K" + text
	}
	fmt.Fprintln(w.Err, text)
}

// ShortID returns the short id of a task; the whole one without a mailbox.
func ShortID(ctx context.Context, at reader.Location, id envelope.ID) envelope.ID {
	short := id
	_ = at.Read(ctx, func(ctx context.Context, r *reader.Reader) error {
		short = r.ShortID(ctx, id)
		return nil
	})
	return short
}
