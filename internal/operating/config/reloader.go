package config

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"time"

	"mailboxd/internal/access/client"
)

// A Reloader reads the configuration of a daemon again. Its fields are set before the first
// call; its methods may be called concurrently.
type Reloader struct {
	Path, Root string                  // as for Load
	Replace    func(Loaded) error      // puts a configuration in force, or returns why it can't be
	Reloading  func() (done func())    // is called before each reload, and done after it
	Done       func(client.ConfigDiff) // is called after each reload

	mu      sync.Mutex // allows one reload at a time; guards InForce and ReadAt
	InForce Loaded
	ReadAt  time.Time // when InForce was read
}

// Serve reloads at each signal, until ctx ends.
func (r *Reloader) Serve(ctx context.Context, signals <-chan os.Signal) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-signals:
			r.Reload()
		}
	}
}

// Reload puts in force what the file says now, and returns what changed. A file with
// mistakes changes nothing.
func (r *Reloader) Reload() client.ConfigDiff {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.Reloading()()
	now := time.Now()
	next, diff := r.compare()
	if len(diff.Mistakes) == 0 {
		if err := r.Replace(next); err != nil {
			diff.Changes, diff.Mistakes = nil, linesOf(err)
		}
	}
	if len(diff.Mistakes) == 0 {
		r.InForce, r.ReadAt, diff.ReadAt = r.InForce.Reload(next), now, now
	}
	r.Done(diff)
	return diff
}

// Diff compares the configuration in force with its file.
func (r *Reloader) Diff() client.ConfigDiff {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, diff := r.compare()
	return diff
}

// compare reads the configuration, and compares the one in force with it.
func (r *Reloader) compare() (Loaded, client.ConfigDiff) {
	next, err := LoadAll(r.Path, r.Root)
	diff := client.ConfigDiff{File: r.InForce.Config.File(), ReadAt: r.ReadAt}
	if err != nil {
		diff.Mistakes = linesOf(err)
	} else {
		diff.Changes = r.InForce.Diff(next)
	}
	return next, diff
}

// linesOf returns the mistakes that an error has, or its lines.
func linesOf(err error) (lines []string) {
	mistakes, ok := errors.AsType[Mistakes](err)
	if !ok {
		return strings.Split(strings.TrimSpace(err.Error()), "\n")
	}
	for _, m := range mistakes {
		lines = append(lines, m.String())
	}
	return lines
}
