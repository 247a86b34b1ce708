package web

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
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

// mostOutputs is how many outputs a browser follows over its connection.
const mostOutputs = 64

// live streams the numbers of new events, and the outputs that the tabs of a browser show: a page asks for itself again
// when it sees a number. The id of each is the sequence number of the ledger, so a browser that lost the connection goes
// on from the event that it saw last.
func (s *server) live(w http.ResponseWriter, r *http.Request) {
	rd, _, err := s.opts.Location.Connect(r.Context())
	if err != nil {
		s.failWith(w, r, err) // the browser asks again
		return
	}
	rd.Close()
	stream := live.Begin(w, live.StartOf(r))
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	var following sync.WaitGroup
	following.Go(func() { s.followEvents(ctx, stream, stop) })
	names := slices.Compact(slices.Sorted(slices.Values(r.URL.Query()["output"])))
	for _, name := range names[:min(len(names), mostOutputs)] {
		if id, err := envelope.ParseID(name); err == nil {
			out := stream.Output(name)
			following.Go(func() { s.followOutput(ctx, id, out) })
		}
	}
	_ = stream.Serve(ctx) // the browser is gone
	stop()
	following.Wait()
}

// retryTime is how long a stream without a daemon waits before it looks again.
const retryTime = time.Second

// followEvents follows the events of the daemon, and of the next one after it, until ctx ends. Another ledger ends it.
func (s *server) followEvents(ctx context.Context, stream *live.Stream, stop func()) {
	for up := true; ctx.Err() == nil; {
		rd, daemon, err := s.opts.Location.Connect(ctx)
		if err == nil {
			if !up {
				stream.Say("up")
			}
			up = true
			err = daemon.Follow(ctx, "", stream.Last(), func(e client.Event) error { stream.Set(e.Seq); return nil })
			rd.Close()
		}
		if said, ok := errors.AsType[*client.Error](err); ok && said.Kind == client.Conflict {
			stream.Say("anew") // the ledger was begun anew
			stop()
			return
		}
		if up {
			stream.Say("down")
		}
		up = false
		select {
		case <-ctx.Done():
		case <-time.After(retryTime):
		}
	}
}

// followOutput sends what the run of a task writes, until it is over.
func (s *server) followOutput(ctx context.Context, id envelope.ID, out *live.Output) {
	defer out.End()
	found, err := s.details(ctx, id)
	if err != nil || len(found.Runs) == 0 || found.Runs[len(found.Runs)-1].Dir == "" {
		return
	}
	tail := newOutputTail(found.Runs[len(found.Runs)-1].Dir, out)
	defer tail.Close()
	_ = tail.Follow(ctx, rarely(time.Now, func() bool { return s.ended(ctx, id) })) // the page shows what is there
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

// details asks the daemon about a task.
func (s *server) details(ctx context.Context, id envelope.ID) (client.TaskDetails, error) {
	rd, _, err := s.opts.Location.Connect(ctx)
	if err != nil {
		return client.TaskDetails{}, err
	}
	defer rd.Close()
	return rd.Details(ctx, id)
}

// ended reports whether the run of a task is over. Without a daemon nobody knows.
func (s *server) ended(ctx context.Context, id envelope.ID) bool {
	found, err := s.details(ctx, id)
	return err == nil && found.Task.State != task.Running
}
