package core_test

import (
	"slices"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

func TestTheEventOfARetrySaysWhatItWaitsFor(t *testing.T) {
	failed := task.Task{Seq: 1, ID: "t1", Revision: 1, State: task.Done, Status: envelope.Failed, Agent: "a", Latest: true}
	for _, want := range [][]task.Reason{nil, {task.ChangeWindow}} {
		retry := &core.Resubmit{Task: 1, By: core.By{Who: "root"}, Verdict: task.Verdict{Admit: true, Hold: want}}
		events, err := core.Decide(core.NewState(core.Task{Task: failed}), retry, core.Config{}, time.Now())
		if err != nil || len(events) == 0 {
			t.Fatalf("Decide() = %v, %v", events, err)
		}
		held, says := events[0].Data.(map[string]any)["held"]
		if reasons, _ := held.([]task.Reason); says != (want != nil) || !slices.Equal(reasons, want) {
			t.Errorf("the event says held %v; want %v", held, want)
		}
	}
}
