package store

import (
	"context"
	"errors"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/core"
	"mailboxd/internal/ledger"
	"mailboxd/internal/task"
)

// judgeAfter holds a task that names another one, until that one has ended. If that one didn't end
// ok, the task is refused, unless it says otherwise.
func judgeAfter(rd *Reader, t envelope.Task, v task.Verdict, now time.Time) task.Verdict {
	other, ifFailed := t.After()
	if other == "" || !v.Admit {
		return v
	}
	added := rd.Held.After.Add(t.ID, other) // before the look, so that no end is missed
	if !added && forgetEnded(rd, other) {
		added = rd.Held.After.Add(t.ID, other)
	}
	if !added {
		return refusedAfter(v, envelope.InvalidEnvelope, "task "+string(other)+" waits for this one")
	}
	row, err := rd.Newest(context.Background(), other)
	switch {
	case errors.Is(err, ledger.ErrUnknown), err == nil && row.State != task.Done:
		return core.Held(v, task.After)
	case err != nil:
		return core.HeldUntil(v, task.After, now.Add(RetryPause))
	}
	rd.Held.After.Remove(t.ID)
	if row.Status != envelope.OK && ifFailed != envelope.RunIfFailed {
		return refusedAfter(v, envelope.DependencyFailed, "task "+string(other)+" ended as "+string(row.Status))
	}
	return v
}

// forgetEnded removes the tasks that have ended from those that a task waits for, directly or
// through others: a line that came again may have added them. It reports whether there was one.
func forgetEnded(rd *Reader, id envelope.ID) (forgot bool) {
	for _, waiting := range rd.Held.After.Chain(id) {
		if row, err := rd.Newest(context.Background(), waiting); err == nil && row.State == task.Done {
			rd.Held.After.Remove(waiting)
			forgot = true
		}
	}
	return forgot
}

// refusedAfter returns a verdict that refuses a task for the task that it names.
func refusedAfter(v task.Verdict, kind envelope.Kind, why string) task.Verdict {
	refused := envelope.Finding{Kind: kind, Field: "metadata." + envelope.AfterKey, Message: why}
	return task.Verdict{Findings: append(v.Findings, refused), Terms: task.Terms{Levels: v.Levels}}
}
