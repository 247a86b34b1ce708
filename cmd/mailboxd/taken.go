package main

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/sys/unix"

	"mailboxd/envelope"
	"mailboxd/internal/client"
	"mailboxd/internal/config"
	"mailboxd/internal/exit"
	"mailboxd/internal/task"
)

// manyEvents is how many events of a task are looked at in one go.
const manyEvents = 1000

// taken blocks until the daemon has taken the line we sent. It is an error
// that the line was refused because its id had been executed with another
// content.
func (s sent) taken(ctx context.Context, cfg config.Config) error {
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		taken, err := s.wasTaken(context.WithoutCancel(ctx), cfg)
		if err != nil || taken {
			return err
		}
		select {
		case <-ctx.Done():
			return exit.With(exit.Timeout, "task %s was %s", s.ID, notTaken(isServed(context.WithoutCancel(ctx), cfg)))
		case <-time.After(pause): // the ledger tells nobody that it has changed
		}
	}
}

// wasTaken looks for our line in the ledger, which it opens anew each time:
// the daemon may just have made it. A line that is met again has no event of
// its own, and of a file that was rotated away since only the events tell.
func (s sent) wasTaken(ctx context.Context, cfg config.Config) (bool, error) {
	desk, err := deskOf(ctx, cfg)
	if err != nil {
		return false, err
	}
	defer desk.Close()
	if desk.books == nil {
		return false, nil
	}
	read, err := desk.hasRead(ctx, s) // first: its event is written with it
	if err != nil {
		return false, err
	}
	fate, _, err := desk.fate(ctx, s)
	if fate == task.KindTaskDuplicateConflict {
		return true, exit.With(exit.Rejected, "task %s was executed before with another content, and its agent refuses to run it again; send it under a new id, or see: %s", s.ID, advise("result", s.ID))
	}
	return read || fate != "", err
}

// hasRead reports whether the daemon has read behind our line. An offset that
// was reached in another file of that name does not count.
func (d *desk) hasRead(ctx context.Context, s sent) (bool, error) {
	var now unix.Stat_t
	err := unix.Stat(filepath.Join(d.root, s.File), &now)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	files, err := d.books.Files(ctx)
	return slices.ContainsFunc(files, func(f client.Cursor) bool {
		return f.Path == s.File && f.Inode == now.Ino && f.Offset >= s.End && f.Offset <= now.Size
	}), err
}

// fate returns the kind of the event that tells of our line, "" when there is
// none, and the number of the last event of the task.
func (d *desk) fate(ctx context.Context, s sent) (kind task.Kind, last int64, err error) {
	for last = s.last; ; {
		events, err := d.books.Events(ctx, s.ID, last, manyEvents)
		if err != nil {
			return "", last, err
		}
		for _, e := range events {
			last = e.Seq
			var at sent
			if json.Unmarshal(e.Data, &at) == nil && s.File != "" && at.File == s.File && at.Offset == s.Offset {
				kind = e.Kind
			}
		}
		if len(events) < manyEvents {
			return kind, last, nil
		}
	}
}

// lastEvent returns the number of the last event of a task, 0 for none.
func lastEvent(ctx context.Context, cfg config.Config, id envelope.ID) (int64, error) {
	desk, err := deskOf(ctx, cfg)
	if errors.Is(err, errNoMailbox) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer desk.Close()
	if desk.books == nil || id == "" {
		return 0, nil
	}
	_, last, err := desk.fate(ctx, sent{ID: id})
	return last, err
}
