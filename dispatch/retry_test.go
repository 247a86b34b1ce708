package dispatch

import (
	"testing"
	"time"

	"mailboxd/dispatch/executor"
	"mailboxd/dispatch/store"
	"mailboxd/internal/decisions/task"
)

func TestBackoffDoublesUpToFiveMinutes(t *testing.T) {
	for attempts, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 4: 8 * time.Second, 50: 5 * time.Minute} {
		if got := store.Backoff(time.Second, attempts); got > want || got < want*3/4 {
			t.Errorf("backoff(1s, %d) = %s; want %s, or up to a quarter less", attempts, got, want)
		}
	}
	if got := store.Backoff(time.Hour, 1); got > 5*time.Minute {
		t.Errorf("backoff(1h, 1) = %s; want five minutes at most", got)
	}
}

func TestOnlyWhatWentWrongByItselfIsAFailure(t *testing.T) {
	now := time.Now()
	runs := []task.Run{
		{Attempt: 1, ExitCode: 75, Finished: now},
		{Attempt: 2, ExitCode: -1, Cause: task.CauseInterrupted, Finished: now},
		{Attempt: 3},               // never begun
		{Attempt: 4, ExitCode: -1}, // nothing could be started, or nobody knows
		{Attempt: 5},               // this one
	}
	if got := executor.Failures(runs, 5, task.Outcome{}); got != 3 {
		t.Errorf("failures = %d; want 3: attempts 1, 4 and 5", got)
	}
	if got := executor.Failures(runs, 5, task.Outcome{Exit: task.Exit{Cause: task.CauseInterrupted}}); got != 2 {
		t.Errorf("failures = %d when this one was interrupted; want 2", got)
	}
}
