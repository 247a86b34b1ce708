package view

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"mailboxd/internal/cli/term"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// A Summary is the status line of a daemon on a terminal.
type Summary struct {
	Footer *term.Footer // nil without a terminal
	Root   string       // the mailbox
	Ledger *ledger.Ledger
	last   string // the last result
	seen   int64  // the last event that was searched
}

// summaryGap is the least time between two updates.
const summaryGap = 250 * time.Millisecond

// Serve updates the line until ctx ends, and removes it then.
func (s *Summary) Serve(ctx context.Context) error {
	if s.Footer == nil {
		return nil
	}
	defer s.Footer.Show("")
	for {
		changed, began := s.Ledger.Changed(), time.Now()
		line, err := s.Line(ctx)
		if err == nil { // the daemon logs faults of its ledger
			s.Footer.Show(line)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(max(summaryGap, 20*time.Since(began))): // counting a million tasks takes long
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

// Line is as "2 queued, 1 running, 0 held; last: t7 ok".
func (s *Summary) Line(ctx context.Context) (string, error) {
	open, err := s.Ledger.CountOpen(ctx)
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

// recentEvents is how many events are searched for the last result.
const recentEvents = 100

// readLast finds the last result among new events.
func (s *Summary) readLast(ctx context.Context) error {
	newest, err := s.Ledger.LastEvent(ctx)
	if err != nil {
		return err
	}
	events, err := s.Ledger.Events(ctx, "", max(s.seen, newest-recentEvents), recentEvents)
	for _, e := range events {
		s.seen = e.Seq
		status, ends := endings[e.Kind]
		if !ends {
			continue
		}
		if said, ok := EventData(e.Data)["status"].(string); ok {
			status = said
		}
		s.last = strings.TrimSpace(term.OneLine(string(e.Task)) + " " + term.OneLine(status))
	}
	return err
}

// endings are the events of results, with the status where they have none.
var endings = map[task.Kind]string{task.KindTaskFinished: "", task.KindTaskCancelled: "cancelled", task.KindTaskRejected: "rejected"}

// longBacklog is how many unread bytes are worth showing.
const longBacklog = 4 << 20

// unread returns the unread bytes of the task files.
func (s *Summary) unread(ctx context.Context) (left int64, err error) {
	paths, err := filepath.Glob(filepath.Join(s.Root, "tasks", "*.jsonl"))
	if err != nil {
		return 0, err
	}
	files, err := s.Ledger.Files(ctx)
	read := map[string]int64{}
	for _, f := range files {
		read[filepath.Join(s.Root, f.Path)] = f.Offset
	}
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			left += max(0, info.Size()-read[path])
		}
	}
	return left, err
}
