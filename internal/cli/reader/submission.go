package reader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/sys/unix"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/decisions/task"
	"mailboxd/mailbox"
)

// A Submission is a line that was appended to a task file.
type Submission struct {
	ID     envelope.ID `json:"task_id"`
	File   string      `json:"file"`
	Offset int64       `json:"offset"` // where the line begins

	End        int64 `json:"-"` // of the line
	lastBefore int64 // the last event of the task before the line
}

// Print prints the id of the task; nothing for a message without a task.
func (s Submission) Print(w io.Writer, asJSON bool) error {
	if asJSON {
		return term.PrintJSON(w, s)
	}
	if s.ID == "" {
		return nil
	}
	_, err := fmt.Fprintln(w, s.ID)
	return err
}

// AwaitIntake waits until the daemon has taken the line. It fails when the daemon
// refused the line because its id was executed with another content.
func (s Submission) AwaitIntake(ctx context.Context, at Location) error {
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		taken, err := s.Taken(context.WithoutCancel(ctx), at)
		if err != nil || taken {
			return err
		}
		select {
		case <-ctx.Done():
			return exit.With(exit.Timeout, "task %s was %s", s.ID, notTaken(isServed(context.WithoutCancel(ctx), at)))
		case <-time.After(pause):
		}
	}
}

// Taken reports whether the daemon has taken the line. It opens a new reader, since the
// ledger may be new. A repeated line has no event, and a rotated file has no offset, so
// it looks for both.
func (s Submission) Taken(ctx context.Context, at Location) (bool, error) {
	r, err := at.Open(ctx)
	if err != nil {
		return false, err
	}
	defer r.Close()
	read, err := r.hasRead(ctx, s) // first, since the event is written with it
	if err != nil {
		return false, err
	}
	fate, _, err := r.outcome(ctx, s)
	if fate == task.KindTaskDuplicateConflict {
		return true, exit.With(exit.Rejected, "task %s was executed before with another content, and its agent refuses to run it again; send it under a new id, or see: %s", s.ID, view.Command("result", s.ID))
	}
	return read || fate != "", err
}

// hasRead reports whether the daemon has read the line. An offset in another file of
// that name does not count.
func (r *Reader) hasRead(ctx context.Context, s Submission) (bool, error) {
	var now unix.Stat_t
	err := unix.Stat(filepath.Join(r.Root, s.File), &now)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	files, err := r.Client.Files(ctx)
	return slices.ContainsFunc(files, func(f client.Cursor) bool {
		return f.Path == s.File && f.Inode == now.Ino && f.Offset >= s.End && f.Offset <= now.Size
	}), err
}

// outcome returns the kind of the event about the line, "" without one, and the number
// of the last event of the task.
func (r *Reader) outcome(ctx context.Context, s Submission) (kind task.Kind, last int64, err error) {
	for last = s.lastBefore; ; {
		events, err := r.Client.Events(ctx, s.ID, last, EventPage)
		if err != nil {
			return "", last, err
		}
		for _, e := range events {
			last = e.Seq
			var of Submission
			if json.Unmarshal(e.Data, &of) == nil && s.File != "" && of.File == s.File && of.Offset == s.Offset {
				kind = e.Kind
			}
		}
		if len(events) < EventPage {
			return kind, last, nil
		}
	}
}

// Submit appends a line. With wait, AwaitResult ignores earlier events of the task.
func (l Location) Submit(ctx context.Context, request []byte, wait bool) (Submission, error) {
	id, last := nameOf(request), int64(0)
	if wait {
		var err error
		if last, err = lastEvent(ctx, l, id); err != nil {
			return Submission{}, err
		}
	}
	file, offset, err := mailbox.Append(l.Root, request)
	if err != nil {
		return Submission{}, err
	}
	return Submission{ID: id, File: file, Offset: offset, End: offset + int64(len(request)) + 1, lastBefore: last}, nil
}

// lastEvent returns the number of the last event of a task, 0 for none.
func lastEvent(ctx context.Context, at Location, id envelope.ID) (int64, error) {
	r, err := at.Open(ctx)
	if errors.Is(err, ErrNoMailbox) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer r.Close()
	if id == "" {
		return 0, nil
	}
	_, last, err := r.outcome(ctx, Submission{ID: id})
	return last, err
}

// EventPage is how many events are read at once.
const EventPage = 1000

// nameOf returns the id of the task in a line, as far as it is readable.
func nameOf(request []byte) envelope.ID {
	d := envelope.MarkedAs(request)
	if codec, ok := dialect.Of(d); ok && d != envelope.AINL {
		m, _ := codec.Decode(request, envelope.Strict)
		return m.Request.ID
	}
	return envelope.Salvage(request)
}
