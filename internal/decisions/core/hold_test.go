package core_test

import (
	"slices"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

func TestTheHoldOfAPersonCoversANewerLineOfTheTask(t *testing.T) {
	now := time.Date(2026, 3, 9, 12, 0, 0, 0, time.UTC)
	admits := task.Verdict{Admit: true}
	for _, test := range []struct {
		name    string
		running bool // an earlier revision runs, so the newer line waits
		last    task.Task
		verdict task.Verdict
		want    task.State
		held    []task.Reason
	}{
		{"that replaces the held one", false, task.Task{State: task.Held, Reasons: []task.Reason{task.Operator}}, admits, task.Held, []task.Reason{task.Operator}},
		{"that is held for another reason too", false, task.Task{State: task.Held, Reasons: []task.Reason{task.Operator}},
			task.Verdict{Admit: true, Hold: []task.Reason{task.ChangeWindow}}, task.Held, []task.Reason{task.ChangeWindow, task.Operator}},
		{"that waits behind a run", true, task.Task{State: task.Received, Reasons: []task.Reason{task.Operator}}, admits, task.Received, []task.Reason{task.Operator}},
		{"that was restored and waits behind a run", true, task.Task{State: task.Received, Reasons: []task.Reason{task.Operator}},
			task.Verdict{Admit: true, Hold: []task.Reason{task.Recovered}}, task.Received, []task.Reason{task.Operator, task.Recovered}},
		{"that nobody holds and that waits behind a run", true, task.Task{State: task.Received}, admits, task.Received, nil},
		{"that replaces one that waits for another reason", false, task.Task{State: task.Held, Reasons: []task.Reason{task.Paused}}, admits, task.Queued, nil},
	} {
		state := core.NewState()
		if test.running {
			state.Add(core.Task{Task: task.Task{Seq: 1, ID: "t", Revision: 1, State: task.Running, Attempt: 1}})
		}
		last := test.last
		last.Seq, last.ID, last.Revision, last.Latest = 2, "t", 2, true
		state.Add(core.Task{Task: last})
		accept := &core.Accept{Request: envelope.Task{ID: "t", Hash: "new", Agent: "a"}, Verdict: test.verdict}
		events, err := core.Decide(state, accept, core.Config{}, now)
		if err != nil {
			t.Errorf("a line %s: %v", test.name, err)
			continue
		}
		core.Number(events, 3)
		core.Apply(state, events)
		if got := state.Task(3); got.State != test.want || !slices.Equal(got.Reasons, test.held) {
			t.Errorf("a line %s is %s %v; want %s %v", test.name, got.State, got.Reasons, test.want, test.held)
		}
	}
}

func TestACancelEndsTheRunWhoseAnswerCannotBeRead(t *testing.T) {
	now := time.Date(2026, 3, 9, 12, 0, 0, 0, time.UTC)
	run := &task.Run{Task: 1, Attempt: 1, Intent: now.Add(-time.Minute)}
	for _, test := range []struct {
		name   string
		reason task.Reason
		run    *task.Run
		want   task.Cause
	}{
		{"a task with an unreadable answer", task.AnswerUnread, run, task.CauseLost},
		{"a task with an unreadable answer whose run is not known", task.AnswerUnread, nil, ""},
		{"a task that is held by hand", task.Operator, run, ""},
	} {
		held := task.Task{Seq: 1, ID: "t", Revision: 1, Latest: true, State: task.Held, Attempt: 1, Reasons: []task.Reason{test.reason}}
		state := core.NewState(core.Task{Task: held, Run: test.run})
		events, err := core.Decide(state, &core.Cancel{Task: 1, Seen: core.See(held)}, core.Config{}, now)
		if err != nil {
			t.Fatal(err)
		}
		var cause task.Cause
		for _, e := range events {
			if ended, ok := e.Change.(*core.RunEnded); ok {
				cause = ended.Run.Cause
			}
		}
		if cause != test.want {
			t.Errorf("the cancel of %s ends its run as %q; want %q", test.name, cause, test.want)
		}
	}
}
