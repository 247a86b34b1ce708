package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"mailboxd/dispatch/store"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// RunnerHasRoom judges tasks again for which a runner has room, after a *schedule.UnfitError.
func (st *steps) RunnerHasRoom(tasks []int64) {
	for _, seq := range tasks {
		st.Timers.Now(seq)
	}
}

// runnerHasRoom says that a task is held until a runner that may have it has room, or isn't any more. It reports
// whether one has room already. A task that isn't held for that has none.
func (st *steps) runnerHasRoom(row task.Task, held bool) bool {
	return slices.Contains(row.Reasons, task.NoRunner) && st.Agents.Runners != nil && st.Agents.Runners.Held(row.Seq, held)
}

// RecordFenced records that an answer of a runner came after the end of its run. The answer changes nothing; its
// file is below the state directory.
func (ct *controls) RecordFenced(ctx context.Context, late task.LateAnswer) error {
	row, err := ct.Ledger.Task(ctx, late.Run.Task)
	if errors.Is(err, ledger.ErrUnknown) {
		return nil // the ledger has never known the task, or has removed it
	}
	if err == nil {
		data := map[string]any{"attempt": late.Run.Attempt, "runner": late.At.Runner, "reason": late.Why}
		for name, value := range map[string]string{"file": late.File, "status": string(late.Status), "message": late.Summary} {
			if value != "" {
				data[name] = value
			}
		}
		if len(late.Left) > 0 {
			data["left"] = late.Left
		}
		err = ct.Writer.Update(context.WithoutCancel(ctx), func(tx *store.Transaction) error {
			return tx.Log(store.Event(row, task.KindRunFenced, data))
		})
	}
	if err != nil {
		return fmt.Errorf("record late answer of %s: %w", late.At.Runner, err)
	}
	return nil
}

// mostHistory is among how many of the latest events of a task a late answer is looked for. A second event would do no harm.
const mostHistory = 1000

// HasLateAnswer reports whether a late answer of a run was recorded.
func (ct *controls) HasLateAnswer(ctx context.Context, run task.RunName) (bool, error) {
	row, err := ct.Ledger.Task(ctx, run.Task)
	if err != nil {
		return false, fmt.Errorf("look up late answer: %w", err)
	}
	events, err := ct.Ledger.History(ctx, row.ID, mostHistory)
	return slices.ContainsFunc(events, func(e task.Event) bool {
		var data struct{ Attempt int }
		return e.Kind == task.KindRunFenced && e.Revision == row.Revision &&
			json.Unmarshal(e.Data, &data, json.MatchCaseInsensitiveNames(true)) == nil && data.Attempt == run.Attempt
	}), err
}

// RecordRunner records an event about a runner, which concerns no task.
func (ct *controls) RecordRunner(ctx context.Context, kind task.Kind, runner string, data map[string]any) error {
	data["runner"] = runner
	err := ct.Writer.Update(context.WithoutCancel(ctx), func(tx *store.Transaction) error {
		return tx.Log(store.Event(task.Task{}, kind, data))
	})
	if err != nil {
		return fmt.Errorf("record %s of %s: %w", kind, runner, err)
	}
	return nil
}
