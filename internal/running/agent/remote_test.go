package agent_test

import (
	"context"
	"fmt"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/agent"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/stores/worktree"
)

func TestATaskWhoseCommitsCannotTravelIsRefusedWithTheReason(t *testing.T) {
	a, err := agent.New([]agent.Binding{{ID: "far", Remote: &agent.Remote{}}}, agent.Options{Runners: agent.Runners{
		Run: func(context.Context, task.Job, func(runner.Process)) task.Outcome {
			return task.Outcome{Void: fmt.Errorf("send the commit: %w", &worktree.TooLargeError{What: "it is larger than 1024 MiB"})}
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	j := task.Job{Task: envelope.Task{ID: "t1", Agent: "far"}, At: task.Assignment{Runner: "gpu-1", Incarnation: "i", Token: "1-1-1-1-r"}}
	o := a.Run(t.Context(), j, nil)
	if r := o.Result; o.Void != nil || r.Error.Kind != envelope.SpawnFailed || r.Error.Message != "send the commit: it is larger than 1024 MiB" {
		t.Errorf("the outcome is %+v, %v; want a refusal with the reason", r, o.Void)
	}
}
