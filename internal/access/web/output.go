package web

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/access/web/live"
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
	out := live.NewWriter(w)
	if err := out.Send("event: begin\ndata: 0\n\n"); err != nil {
		return
	}
	tail := newOutputTail(dir, out)
	defer tail.Close()
	err = tail.Follow(r.Context(), rarely(time.Now, func() bool { return s.ended(r) }))
	if err == nil && r.Context().Err() == nil {
		_ = out.Send("event: end\ndata: 0\n\n") // the browser is gone otherwise
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

// live streams the numbers of new events: a page asks for itself again when it sees one. The id
// of each is the sequence number of the ledger, so a browser that lost the connection, or found
// no daemon, goes on from the event that it saw last.
func (s *server) live(w http.ResponseWriter, r *http.Request) {
	after := live.StartOf(r)
	rd, daemon, err := s.opts.Location.Connect(r.Context())
	if err != nil {
		s.failWith(w, r, err) // the browser asks again
		return
	}
	defer rd.Close()
	out := live.NewWriter(w)
	if out.Send("retry: 1000\n\n") != nil {
		return
	}
	beat := live.NewBeat(out, after)
	var beating sync.WaitGroup
	ctx, stop := context.WithCancel(r.Context())
	defer beating.Wait()
	defer stop()
	beating.Go(func() { beat.Serve(ctx, stop) })
	err = daemon.Follow(ctx, "", after, func(e client.Event) error { beat.Set(e.Seq); return nil })
	if said, ok := errors.AsType[*client.Error](err); ok && said.Kind == client.Conflict {
		_ = out.Send("id: 0\nevent: anew\ndata: 0\n\n") // the ledger was begun anew
	} else if r.Context().Err() == nil {
		_ = out.Send("event: down\ndata: 0\n\n")
	}
}
