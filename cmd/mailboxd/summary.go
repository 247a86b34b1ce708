package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"mailboxd/internal/ledger"
	"mailboxd/internal/task"
	"mailboxd/internal/term"
	"mailboxd/internal/view"
)

// A summary says in one line on a terminal what a daemon does.
type summary struct {
	footer *term.Footer // nil: nobody looks
	root   string
	ledger *ledger.Ledger
	last   string // the last result
	seen   int64  // the event up to which that is so
}

// summaryGap is the least time between two looks.
const summaryGap = 250 * time.Millisecond

// serve keeps the line true until ctx ends, and takes it away then.
func (s *summary) serve(ctx context.Context) error {
	if s.footer == nil {
		return nil
	}
	defer s.footer.Show("")
	for {
		changed, began := s.ledger.Changed(), time.Now()
		line, err := s.line(ctx)
		if err == nil { // the daemon itself says what is wrong with its ledger
			s.footer.Show(line)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(max(summaryGap, 20*time.Since(began))): // a million tasks take a while to count
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

// line is as "2 queued, 1 running, 0 held; last: t7 ok".
func (s *summary) line(ctx context.Context) (string, error) {
	open, err := s.ledger.CountOpen(ctx)
	if err != nil {
		return "", err
	}
	if err := s.readLast(ctx); err != nil {
		return "", err
	}
	words := fmt.Sprintf("%d queued, %d running, %d held", open[task.Queued], open[task.Running], open[task.Held]+open[task.Review])
	if left, err := s.unread(ctx); err == nil && left > longBacklog {
		words = fmt.Sprintf("%d MB of tasks to read, ", left>>20) + words
	}
	if s.last != "" {
		words += "; last: " + s.last
	}
	return words, nil
}

// recentEvents is how many events are looked through for the last result: it is
// among the last ones, or a moment old.
const recentEvents = 100

// readLast finds the last result among what happened since.
func (s *summary) readLast(ctx context.Context) error {
	newest, err := s.ledger.LastEvent(ctx)
	if err != nil {
		return err
	}
	events, err := s.ledger.Events(ctx, "", max(s.seen, newest-recentEvents), recentEvents)
	for _, e := range events {
		s.seen = e.Seq
		status, ends := endings[e.Kind]
		if !ends {
			continue
		}
		if said, ok := view.EventData(e.Data)["status"].(string); ok {
			status = said
		}
		s.last = strings.TrimSpace(term.OneLine(string(e.Task)) + " " + term.OneLine(status))
	}
	return err
}

// endings are the events with which a task has its result, and the status where
// they do not tell it.
var endings = map[task.Kind]string{task.KindTaskFinished: "", task.KindTaskCancelled: "cancelled", task.KindTaskRejected: "rejected"}

// longBacklog is from how many bytes of unread tasks one would like to know.
const longBacklog = 4 << 20

// unread returns how many bytes of the task files are still to be read.
func (s *summary) unread(ctx context.Context) (left int64, err error) {
	paths, err := filepath.Glob(filepath.Join(s.root, "tasks", "*.jsonl"))
	if err != nil {
		return 0, err
	}
	files, err := s.ledger.Files(ctx)
	read := map[string]int64{}
	for _, f := range files {
		read[filepath.Join(s.root, f.Path)] = f.Offset
	}
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			left += max(0, info.Size()-read[path])
		}
	}
	return left, err
}
