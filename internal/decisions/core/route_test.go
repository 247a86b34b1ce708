package core_test

import (
	"errors"
	"testing"
	"time"

	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

// A task was taken back from its agent and given to another one after a worker read it.
func TestACommandForTheEarlierAgentOfATaskIsStale(t *testing.T) {
	read := task.Task{Seq: 1, ID: "t1", State: task.Queued, Agent: "a", Latest: true}
	now := read
	now.Agent = "b"
	for _, c := range []core.Command{
		&core.Intend{Task: 1, Agent: read.Agent, To: task.Running, Run: task.Run{Task: 1, Attempt: 1}},
		&core.Unbind{Task: 1, Seen: core.See(read), Why: "is paused"},
		&core.Judge{Task: 1, Seen: core.See(read), Verdict: task.Verdict{Admit: true, Hold: []task.Reason{task.Paused}}},
	} {
		if events, err := core.Decide(core.NewState(core.Task{Task: now}), c, core.Config{}, time.Time{}); !errors.Is(err, core.ErrStale) {
			t.Errorf("Decide(%T) = %v, %v; want ErrStale", c, events, err)
		}
		if _, err := core.Decide(core.NewState(core.Task{Task: read}), c, core.Config{}, time.Time{}); err != nil {
			t.Errorf("Decide(%T) for the agent of the task = %v", c, err)
		}
	}
}
