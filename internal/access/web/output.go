package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/access/web/agenttext"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
)

// output streams what a running agent writes, from its beginning: a server-sent event for each
// part, with a JSON string.
func (s *server) output(w http.ResponseWriter, r *http.Request) {
	dir, err := s.runDir(r)
	if err != nil {
		s.failWith(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := newEventWriter(w)
	if err := out.send("event: begin\ndata: 0\n\n"); err != nil {
		return
	}
	tail := newOutputTail(dir, out)
	defer tail.Close()
	err = tail.Follow(r.Context(), rarely(time.Now, func() bool { return s.ended(r) }))
	if err == nil && r.Context().Err() == nil {
		_ = out.send("event: end\ndata: 0\n\n") // the browser is gone otherwise
	}
}

// newOutputTail copies the output of a run for people.
func newOutputTail(dir string, out io.Writer) *reader.Tail {
	tail := reader.NewTail(dir)
	tail.Add(runner.SetupFile, view.NewSetupLog(term.NewSanitizer(out)))
	tail.Add(runner.StdoutFile, view.NewTranscript(term.NewSanitizer(out)))
	tail.Add(runner.StderrFile, term.NewSanitizer(out))
	return tail
}

// askGap is the least time between two questions whether a run has ended.
const askGap = 500 * time.Millisecond

// rarely limits how often a question is asked. In between the answer is no.
func rarely(now func() time.Time, ask func() bool) func() bool {
	var last time.Time
	return func() bool {
		if at := now(); at.Sub(last) >= askGap {
			last = at
			return ask()
		}
		return false
	}
}

// runDir returns the directory of the last run of a task.
func (s *server) runDir(r *http.Request) (string, error) {
	found, err := s.details(r)
	if err == nil && (len(found.Runs) == 0 || found.Runs[len(found.Runs)-1].Dir == "") {
		err = &client.Error{Kind: client.NoTask, Message: "the task has no run with an output"}
	}
	if err != nil {
		return "", err
	}
	return found.Runs[len(found.Runs)-1].Dir, nil
}

func (s *server) details(r *http.Request) (client.TaskDetails, error) {
	id, err := envelope.ParseID(idOf(r))
	if err != nil {
		return client.TaskDetails{}, &client.Error{Kind: client.NoTask, Message: "there is no such task"}
	}
	rd, _, err := s.opts.Location.Connect(r.Context())
	if err != nil {
		return client.TaskDetails{}, err
	}
	defer rd.Close()
	return rd.Details(r.Context(), id)
}

// ended reports whether the run of a task is over. Without a daemon nobody knows.
func (s *server) ended(r *http.Request) bool {
	found, err := s.details(r)
	return err == nil && found.Task.State != task.Running
}

// An eventWriter sends text as server-sent events.
type eventWriter struct {
	mu      sync.Mutex // guards w
	w       http.ResponseWriter
	control *http.ResponseController
}

// slowest is how long one write to a browser may take.
const slowest = 10 * time.Second

func newEventWriter(w http.ResponseWriter) *eventWriter {
	return &eventWriter{w: w, control: http.NewResponseController(w)}
}

func (e *eventWriter) send(text string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	err := e.control.SetWriteDeadline(time.Now().Add(slowest))
	if err == nil {
		_, err = io.WriteString(e.w, text)
	}
	return errors.Join(err, e.control.Flush())
}

// Write sends a part of an output.
func (e *eventWriter) Write(part []byte) (int, error) {
	text, err := json.Marshal(term.Escape(agenttext.LineEnds.Replace(strings.ToValidUTF8(string(part), "\uFFFD"))))
	if err != nil {
		return 0, err
	}
	return len(part), e.send(fmt.Sprintf("data: %s\n\n", text))
}

// live streams the numbers of new events: a page asks for itself again when it sees one. The id
// of each is the sequence number of the ledger, so a browser that lost the connection, or found
// no daemon, goes on from the event that it saw last.
func (s *server) live(w http.ResponseWriter, r *http.Request) {
	after := startOf(r)
	rd, daemon, err := s.opts.Location.Connect(r.Context())
	if err != nil {
		s.failWith(w, r, err) // the browser asks again
		return
	}
	defer rd.Close()
	w.Header().Set("Content-Type", "text/event-stream")
	out := newEventWriter(w)
	if out.send("retry: 1000\n\n") != nil {
		return
	}
	beat := &beat{out: out, last: after, sent: after}
	var beating sync.WaitGroup
	ctx, stop := context.WithCancel(r.Context())
	defer beating.Wait()
	defer stop()
	beating.Go(func() { beat.serve(ctx, stop) })
	err = daemon.Follow(ctx, "", after, func(e client.Event) error { beat.set(e.Seq); return nil })
	if said, ok := errors.AsType[*client.Error](err); ok && said.Kind == client.Conflict {
		_ = out.send("id: 0\nevent: anew\ndata: 0\n\n") // the ledger was begun anew
	} else if r.Context().Err() == nil {
		_ = out.send("event: down\ndata: 0\n\n")
	}
}

// startOf is the event after which a browser goes on; negative: from now on.
func startOf(r *http.Request) int64 {
	for _, text := range []string{r.Header.Get("Last-Event-ID"), r.URL.Query().Get("after")} {
		var n int64
		if _, err := fmt.Sscan(text, &n); err == nil && n >= 0 {
			return n
		}
	}
	return -1
}

// A beat sends the number of the newest event, at most five times a second.
type beat struct {
	out *eventWriter

	mu   sync.Mutex // guards last and sent
	last int64
	sent int64
}

func (b *beat) set(seq int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = seq
}

// news returns the newest event, if it was not sent.
func (b *beat) news() (int64, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fresh := b.last > 0 && b.last != b.sent
	b.sent = b.last
	return b.last, fresh
}

// beatTime is the time between two messages, and alive between those that say nothing.
const (
	beatTime = 200 * time.Millisecond
	alive    = 15 * time.Second
)

// serve sends until ctx ends; a browser that is gone ends it.
func (b *beat) serve(ctx context.Context, stop func()) {
	ticks, quiet := time.NewTicker(beatTime), time.Now()
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		text := ""
		if seq, fresh := b.news(); fresh {
			text = fmt.Sprintf("id: %d\ndata: %d\n\n", seq, seq)
		} else if time.Since(quiet) > alive {
			text = ": alive\n\n"
		}
		if text != "" {
			quiet = time.Now()
			if b.out.send(text) != nil {
				stop()
				return
			}
		}
	}
}
