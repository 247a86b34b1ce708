package main

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/client"
	"mailboxd/internal/reader"
	"mailboxd/internal/task"
	"mailboxd/internal/term"
)

// leavingDaemon lists one running task, and is gone when it is asked for the details.
type leavingDaemon struct {
	reader.Records
	gone bool
}

var runningTask = client.Task{Seq: 1, ID: "t1", Revision: 1, State: task.Running, Agent: "a"}

func (l leavingDaemon) Tasks(_ context.Context, f client.Filter) ([]client.Task, error) {
	if f.After > 0 || len(f.States) == 1 && f.States[0] == task.Done {
		return nil, nil
	}
	return []client.Task{runningTask}, nil
}

func (l leavingDaemon) Count(context.Context, client.Filter) (int, error) { return 0, nil }

func (l leavingDaemon) Paused(context.Context) ([]string, error) { return nil, nil }

func (l leavingDaemon) Details(context.Context, envelope.ID) (client.TaskDetails, error) {
	if l.gone {
		return client.TaskDetails{}, client.ErrDown
	}
	return client.TaskDetails{Task: runningTask}, nil
}

// stuckPipe fails at each write.
type stuckPipe struct{}

var errStuck = errors.New("nobody reads")

func (stuckPipe) Write([]byte) (int, error) { return 0, errStuck }

func TestAWatchPrintsAChangeAfterTheDaemonLeftDuringALook(t *testing.T) {
	var out bytes.Buffer
	screen := term.Screen{Writer: &out, Columns: 120}
	feed := &ticker{flags: &psFlags{}, seen: map[envelope.ID]string{}}
	if err := feed.show(t.Context(), &reader.Reader{Records: leavingDaemon{gone: true}}, screen); !errors.Is(err, client.ErrDown) {
		t.Fatalf("show = %v; want ErrDown", err)
	}
	for range 2 {
		if err := feed.show(t.Context(), &reader.Reader{Records: leavingDaemon{}}, screen); err != nil {
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
			err := feed.show(t.Context(), &reader.Reader{Records: leavingDaemon{}}, term.Screen{Writer: stuckPipe{}, Columns: 120})
			if !errors.Is(err, errStuck) {
				t.Errorf("with JSON %t: show = %v; want the error of the write", asJSON, err)
			}
		}
	}
}
