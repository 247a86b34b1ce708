package core_test

import (
	"slices"
	"testing"
	"time"

	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

func TestARestoredTaskIsHeldUnlessItHasAnAnswer(t *testing.T) {
	now := time.Date(2026, 3, 9, 12, 0, 0, 0, time.UTC)
	run := &task.Run{Task: 1, Attempt: 1, Intent: now.Add(-time.Minute)}
	for _, test := range []struct {
		name  string
		state task.State
		has   []task.Reason
		run   *task.Run
		want  task.State
		holds []task.Reason
		ends  bool // the run counts as lost
	}{
		{"queued", task.Queued, nil, nil, task.Held, []task.Reason{task.Recovered}, false},
		{"running", task.Running, nil, run, task.Held, []task.Reason{task.Recovered}, true},
		{"waiting for its agent", task.Waiting, nil, run, task.Held, []task.Reason{task.Recovered}, true},
		{"asked about", task.Held, []task.Reason{task.Approval}, nil, task.Held, []task.Reason{task.Approval, task.Recovered}, false},
		{"behind another revision", task.Received, nil, nil, task.Received, []task.Reason{task.Recovered}, false},
		{"held already", task.Held, []task.Reason{task.Recovered}, nil, task.Held, []task.Reason{task.Recovered}, false},
		{"in review", task.Review, nil, run, task.Review, nil, false},
		{"answered and unread", task.Held, []task.Reason{task.AnswerUnread}, run, task.Held, []task.Reason{task.AnswerUnread}, false},
		{"done", task.Done, nil, run, task.Done, nil, false},
	} {
		row := task.Task{Seq: 1, ID: "t", Revision: 1, State: test.state, Reasons: test.has, Latest: true}
		if test.run != nil {
			row.Attempt = 1
		}
		state := core.NewState(core.Task{Task: row, Run: test.run})
		events, err := core.Decide(state, &core.HoldRestored{Task: 1, Seen: core.See(row)}, core.Config{}, now)
		if err != nil {
			t.Errorf("a task that is %s: %v", test.name, err)
			continue
		}
		core.Apply(state, events)
		after := state.Task(1)
		if after.State != test.want || !slices.Equal(after.Reasons, test.holds) || after.Attempt != row.Attempt {
			t.Errorf("a task that is %s becomes %s %v in attempt %d; want %s %v in attempt %d", test.name, after.State, after.Reasons, after.Attempt, test.want, test.holds, row.Attempt)
		}
		if ended := after.Run != nil && after.Run.Cause == task.CauseLost && after.Run.Settled; ended != test.ends {
			t.Errorf("the run of a task that is %s is lost: %t; want %t", test.name, ended, test.ends)
		}
	}
}
