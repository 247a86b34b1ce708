package store

import (
	"context"
	"errors"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// judgeAfter holds a task that names another one, until that one has ended. If that one didn't end
// ok, the task is refused, unless it says otherwise.
func judgeAfter(rd *Reader, t envelope.Task, v task.Verdict, now time.Time) task.Verdict {
	other, ifFailed := t.After()
	if other == "" || !v.Admit {
		return v
	}
	row, err := rd.Newest(context.Background(), other)
	var waitsForThis bool
	if err == nil && row.State != task.Done {
		waitsForThis, err = rd.waitsFor(context.Background(), row, t.ID)
	}
	switch {
	case waitsForThis, other == t.ID:
		return refusedAfter(v, envelope.InvalidEnvelope, "task "+string(other)+" waits for this one")
	case err != nil && !errors.Is(err, ledger.ErrUnknown):
		v.Waits = append(v.Waits, task.Wait{Reason: task.After, Key: task.AfterKey(other)})
		return core.HeldUntil(v, task.After, now.Add(RetryPause))
	case err != nil, row.State != task.Done:
		v.Waits = append(v.Waits, task.Wait{Reason: task.After, Key: task.AfterKey(other)})
		return core.Held(v, task.After)
	}
	if row.Status != envelope.OK && ifFailed != envelope.RunIfFailed {
		return refusedAfter(v, envelope.DependencyFailed, "task "+string(other)+" ended as "+string(row.Status))
	}
	return v
}

// waitsFor reports whether a task waits for the end of another one, perhaps through others.
func (rd *Reader) waitsFor(ctx context.Context, row task.Task, other envelope.ID) (bool, error) {
	for seen := map[int64]bool{}; row.State != task.Done && !seen[row.Seq]; {
		seen[row.Seq] = true
		next, err := rd.afterOf(ctx, row)
		if err != nil || next == "" || next == other {
			return next == other, err
		}
		row, err = rd.Newest(ctx, next)
		if errors.Is(err, ledger.ErrUnknown) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// afterOf returns the task for whose end a task waits; "" for none.
func (rd *Reader) afterOf(ctx context.Context, row task.Task) (envelope.ID, error) {
	waits, err := rd.Ledger.Waits(ctx, row.Seq)
	for _, w := range waits {
		if id, ok := w.Key.Task(); ok {
			return id, err
		}
	}
	return "", err
}

// AfterIsOver reports whether a task that is held for the end of another one has to be judged at
// once: that one ended while the task was judged, or both wait for each other, because they came at
// the same time. Then the younger one is judged.
func (rd *Reader) AfterIsOver(ctx context.Context, row task.Task) (bool, error) {
	other, err := rd.afterOf(ctx, row)
	if err != nil || other == "" {
		return err == nil, err // it was not looked up
	}
	before, err := rd.Newest(ctx, other)
	if errors.Is(err, ledger.ErrUnknown) {
		return false, nil
	}
	if err != nil || before.State == task.Done || before.Seq > row.Seq {
		return err == nil && before.State == task.Done, err
	}
	return rd.waitsFor(ctx, before, row.ID)
}

// refusedAfter returns a verdict that refuses a task for the task that it names.
func refusedAfter(v task.Verdict, kind envelope.Kind, why string) task.Verdict {
	refused := envelope.Finding{Kind: kind, Field: "metadata." + envelope.AfterKey, Message: why}
	return task.Verdict{Findings: append(v.Findings, refused), Terms: task.Terms{Levels: v.Levels}}
}
