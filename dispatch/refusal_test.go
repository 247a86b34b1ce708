package dispatch_test

import (
	"context"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

// A reader finds who held what in every result, also where no agent ran.
func TestARefusalSaysWhoHeldWhat(t *testing.T) {
	e := newEngine(t)
	refuses := task.Verdict{
		Findings: envelope.Findings{{Kind: envelope.RoleMismatch, Field: "target_role", Message: "has no such role"}},
		Terms:    task.Terms{Levels: envelope.Levels{envelope.ControlRole: envelope.LevelDaemon}},
	}
	e.judge = func(t envelope.Task, now time.Time) task.Verdict {
		if t.ID == "refused" {
			return refuses
		}
		return holding(t, now)
	}
	e.start()
	e.send("refused", "quick")
	e.await("refused", task.Done)
	e.wantResult("refused", `"enforcement": {`+"\n"+`      "role": "daemon"`)

	e.say(`{"task_id":"shapeless"}`)
	e.await("shapeless", task.Done)
	e.wantResult("shapeless", `"enforcement": {}`)

	e.send("called off", "quick")
	e.must(e.Cancel(t.Context(), "called off", core.By{Who: "tester"}))
	e.await("called off", task.Done)
	e.wantResult("called off", `"enforcement": {}`)
}

func TestAWithheldAnswerStillSaysWhoHeldWhat(t *testing.T) {
	e := newEngine(t)
	e.judge = asking("plan", envelope.ApprovalPost)
	e.plays["quick"] = func(_ context.Context, j task.Job) task.Outcome {
		o := decision(j, "done")
		o.Result.Output.Enforcement = envelope.Levels{envelope.ControlTools: envelope.LevelObserved}
		return o
	}
	e.start()
	for id, end := range map[string]func(envelope.ID) error{
		"denied":     func(id envelope.ID) error { return e.Deny(t.Context(), id, ada, "no") },
		"called off": func(id envelope.ID) error { return e.Cancel(t.Context(), id, me) },
	} {
		e.send(id, "quick")
		e.await(id, task.Review)
		e.must(end(envelope.ID(id)))
		e.await(id, task.Done)
		e.wantResult(id, "The agent's answer is not shown", `"tools": "observed"`)
	}
}
