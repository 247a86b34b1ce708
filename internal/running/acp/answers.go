package acp

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/go-json-experiment/json"
)

// A decision is a line of the answers file.
type decision struct {
	ID       string `json:"id"`
	Decision string `json:"decision"` // allow, reject or cancel
	By       string `json:"by"`
	Reason   string `json:"reason"`
}

// answers are the decisions in a file, which grows. The first decision for an id counts.
type answers struct {
	path string

	mu     sync.Mutex // guards what follows
	known  map[string]decision
	more   chan struct{} // closed and replaced when known grows
	offset int64         // behind the last whole line
}

func newAnswers(path string) *answers {
	return &answers{path: path, known: map[string]decision{}, more: make(chan struct{})}
}

// lookAgain is how often the file is read without an event: a file that was put into a sandbox by
// itself has no events in its directory.
const lookAgain = 500 * time.Millisecond

// follow reads the file whenever it grows, until ctx ends. The file may not exist yet.
func (a *answers) follow(ctx context.Context) {
	if a.path == "" {
		return
	}
	ticker := time.NewTicker(lookAgain)
	defer ticker.Stop()
	var events chan fsnotify.Event // never ready without a watcher: the ticker suffices
	w, err := fsnotify.NewWatcher()
	if err == nil {
		defer w.Close()
		events = w.Events
	}
	dir, watched := filepath.Dir(a.path), false
	for {
		if w != nil && !watched {
			if watched = w.Add(a.path) == nil; watched {
				_ = w.Remove(dir) // it may not be watched
			} else {
				_ = w.Add(dir)
			}
		}
		a.read()
		select {
		case <-ctx.Done():
			return
		case <-events:
		case <-ticker.C:
		}
	}
}

// read reads the whole lines that the file has more. A file that can't be read has none.
func (a *answers) read() {
	f, err := os.Open(a.path)
	if err != nil {
		return
	}
	defer f.Close()
	a.mu.Lock()
	defer a.mu.Unlock()
	text, err := io.ReadAll(io.NewSectionReader(f, a.offset, 1<<40))
	if err != nil {
		return
	}
	end := bytes.LastIndexByte(text, '\n') + 1
	a.offset += int64(end)
	for line := range bytes.Lines(text[:end]) {
		var d decision
		if json.Unmarshal(line, &d, lenient) == nil && d.ID != "" {
			a.put(d)
		}
	}
}

// add adds a decision that isn't in the file.
func (a *answers) add(d decision) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.put(d)
}

// put adds a decision, unless there is one. a.mu is held.
func (a *answers) put(d decision) {
	if _, there := a.known[d.ID]; there {
		return
	}
	a.known[d.ID] = d
	close(a.more)
	a.more = make(chan struct{})
}

// wait returns the decision for an id; false if ended is closed before. Without a file, every call
// is rejected.
func (a *answers) wait(ended <-chan struct{}, id string) (decision, bool) {
	if a.path == "" {
		return decision{ID: id, Decision: "reject"}, true
	}
	for {
		a.mu.Lock()
		d, ok := a.known[id]
		more := a.more
		a.mu.Unlock()
		if ok {
			return d, true
		}
		select {
		case <-more:
		case <-ended:
			return decision{}, false
		}
	}
}
