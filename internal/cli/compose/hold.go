package compose

import (
	"context"
	"errors"
	"slices"

	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

// Unstarted refuses a task that has started.
func Unstarted(t client.Task) error {
	if t.Attempt == 0 && (t.State == task.Received || t.State == task.Queued || t.State == task.Held) {
		return nil
	}
	return exit.With(exit.Failed, "task %s has started: it is %s; to send a changed copy: %s", t.ID, t.State, view.Command("again", t.ID, "--edit"))
}

// WhileHeld calls do while a task is held. A task that only a person releases stays as it is.
func WhileHeld(ctx context.Context, daemon *client.Client, t client.Task, do func() error) (err error) {
	if slices.ContainsFunc(t.Held, core.Releasable) {
		return do()
	}
	if _, err := daemon.Hold(ctx, t.ID, client.ControlOptions{Reason: "it is being edited"}); err != nil {
		return err
	}
	defer func() {
		_, failed := daemon.Release(context.WithoutCancel(ctx), t.ID, client.ControlOptions{})
		err = errors.Join(err, failed)
	}()
	return do()
}
