package reader

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"mailboxd/envelope"
	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/cli/view"
)

// A Waiter waits for the answer to a task and prints it: the answer to Out, and everything
// else to Err.
type Waiter struct {
	Out, Err io.Writer
	At       Location
	JSON     bool // print the result as JSON
	Attended bool // somebody reads Err now, so a task that waits for a person is waited for
}

// Await waits until ctx ends, and returns the result. If nobody attends, it ends with
// exit.NeedsPerson once the task waits for a person.
func (w Waiter) Await(ctx context.Context, s Submission) ([]byte, error) {
	short := ShortID(ctx, w.At, s.ID)
	w.note("task " + string(short))
	progress := func(ctx context.Context) string { return Progress(ctx, w.At, s.ID) }
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
	return w.At.Read(ctx, func(ctx context.Context, r *Reader) error {
		file, err := r.Details(ctx, id)
		if err != nil {
			return nil // the answer is printed, and show can name the work later
		}
		return view.PrintWork(term.ScreenOf(w.Err), file, short)
	})
}

// held prints what the task waits for, or ends the wait with it.
func (w Waiter) held(note HeldNote) error {
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
func ShortID(ctx context.Context, at Location, id envelope.ID) envelope.ID {
	short := id
	_ = at.Read(ctx, func(ctx context.Context, r *Reader) error {
		short = r.ShortID(ctx, id)
		return nil
	})
	return short
}
