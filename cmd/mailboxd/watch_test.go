package main

import (
	"bytes"
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/decisions/task"
)

// leavingDaemon lists one running task, and stops when it is asked for the details.
type leavingDaemon struct{ stops bool }

var runningTask = client.Task{Seq: 1, ID: "t1", Revision: 1, State: task.Running, Agent: "a"}

func (l leavingDaemon) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var answer any = client.TaskDetails{Task: runningTask}
	switch q := r.URL.Query(); {
	case r.URL.Path == client.Base+"/count":
		answer = client.Count{}
	case r.URL.Path == client.Base+"/status":
		answer = client.Status{}
	case r.URL.Path == client.Base+"/tasks" && (q.Has("after") || slices.Equal(q["state"], []string{"done"})):
		answer = client.Page{}
	case r.URL.Path == client.Base+"/tasks":
		answer = client.Page{Tasks: []client.Task{runningTask}}
	case l.stops:
		w.WriteHeader(http.StatusServiceUnavailable)
		answer = client.Failure{Error: client.Error{Kind: client.Stopping}}
	}
	_ = json.MarshalWrite(w, answer)
}

func (l leavingDaemon) reader() *reader.Reader { return &reader.Reader{Client: client.Within(l)} }

// stuckPipe fails at each write.
type stuckPipe struct{}

var errStuck = errors.New("nobody reads")

func (stuckPipe) Write([]byte) (int, error) { return 0, errStuck }

func TestAWatchPrintsAChangeAfterTheDaemonLeftDuringALook(t *testing.T) {
	var out bytes.Buffer
	screen := term.Screen{Writer: &out, Columns: 120}
	feed := &ticker{flags: &psFlags{}, seen: map[envelope.ID]string{}}
	err := feed.show(t.Context(), leavingDaemon{stops: true}.reader(), screen)
	if said, ok := errors.AsType[*client.Error](err); !ok || said.Kind != client.Stopping {
		t.Fatalf("show = %v; want that the daemon stops", err)
	}
	for range 2 {
		if err := feed.show(t.Context(), leavingDaemon{}.reader(), screen); err != nil {
			t.Fatal(err)
		}
	}
	if n := bytes.Count(out.Bytes(), []byte("t1")); n != 1 {
		t.Errorf("the watch printed %d times that t1 runs; want once: %q", n, out.String())
	}
}

func TestAWatchTakesNoChangeAsPrintedWhoseWriteFailed(t *testing.T) {
	for _, asJSON := range []bool{false, true} {
		feed := &ticker{flags: &psFlags{asJSON: asJSON}, seen: map[envelope.ID]string{}}
		for range 2 {
			err := feed.show(t.Context(), leavingDaemon{}.reader(), term.Screen{Writer: stuckPipe{}, Columns: 120})
			if !errors.Is(err, errStuck) {
				t.Errorf("with JSON %t: show = %v; want the error of the write", asJSON, err)
			}
		}
	}
}
