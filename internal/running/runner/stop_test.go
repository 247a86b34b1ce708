package runner_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
)

func TestEachLimitEndsARunByItsName(t *testing.T) {
	for _, test := range []struct {
		want task.Cause
		set  func(*runner.Spec)
	}{
		{task.CauseTimeout, func(s *runner.Spec) { s.Timeout = time.Millisecond }},
		{task.CauseIdleTimeout, func(s *runner.Spec) { s.IdleTimeout = time.Millisecond }},
		{task.CauseDeadline, func(s *runner.Spec) { s.Deadline = time.Now().Add(time.Millisecond) }},
		{task.CauseDeadline, func(s *runner.Spec) { s.Deadline = time.Unix(0, 0) }},
	} {
		s := playing(t, "hang")
		test.set(&s)
		if got := run(t, s); got.Cause != test.want || got.Signal != "SIGTERM (15)" {
			t.Errorf("Run(hang) = %+v; want cause %s by SIGTERM", got, test.want)
		}
	}
}

// Row 25: a deadline in the year 9999 overflows no timer.
func TestAFarDeadlineIsNoDeadline(t *testing.T) {
	s := playing(t, "exit3")
	s.Deadline = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	if got := run(t, s); got.Code != 3 || got.Cause != "" {
		t.Errorf("Run(exit3) = %+v; want its own exit", got)
	}
}

// Row 39: a process that ignores SIGTERM.
func TestWhoIgnoresSIGTERMIsKilledAfterTheGrace(t *testing.T) {
	s := playing(t, "stubborn")
	s.Grace = 10 * time.Millisecond
	ctx, stop := context.WithCancelCause(t.Context())
	why := errors.New("the daemon is shutting down")
	got, err := runner.Run(ctx, s, func(runner.Process) {
		wait(filepath.Join(s.Dir, "ready"))
		stop(why)
	})
	if err != nil || got.Cause != task.CauseInterrupted || got.Signal != "SIGKILL (9)" || got.Reason != why.Error() {
		t.Errorf("Run(stubborn) = %+v, %v; want it interrupted by SIGKILL, for %q", got, err, why)
	}
}

// Row 36: a gigabyte goes to a file, and no more of it stays than may.
func TestTooMuchOutputEndsTheRunAndIsCut(t *testing.T) {
	s := playing(t, "flood")
	s.MaxOutput = 1 << 20
	if got := run(t, s); got.Cause != task.CauseOutputTooLarge {
		t.Errorf("Run(flood) = %+v; want cause %s", got, task.CauseOutputTooLarge)
	}
	if got := len(read(t, s, runner.StdoutFile)); int64(got) != s.MaxOutput {
		t.Errorf("stdout has %d bytes; want it cut to %d", got, s.MaxOutput)
	}
}

// Who ignores SIGTERM would fill the disk for as long as the grace takes.
func TestTooMuchOutputLeavesNoGrace(t *testing.T) {
	s := playing(t, "stubborn flood")
	s.MaxOutput, s.Grace = 1, 24*time.Hour
	if got := run(t, s); got.Cause != task.CauseOutputTooLarge || got.Signal != "SIGKILL (9)" {
		t.Errorf("Run(stubborn flood) = %+v; want cause %s by SIGKILL", got, task.CauseOutputTooLarge)
	}
}

func TestTooMuchOutputIsNoticedAlsoOfAQuickProcess(t *testing.T) {
	s := playing(t, "environ")
	s.MaxOutput = 1
	if got := run(t, s); got.Cause != task.CauseOutputTooLarge {
		t.Errorf("Run(environ) = %+v; want cause %s", got, task.CauseOutputTooLarge)
	}
	if got := read(t, s, runner.StdoutFile); len(got) != 1 {
		t.Errorf("stdout is %q; want it cut to 1 byte", got)
	}
}

// Row 39: a child that holds stdout open keeps nobody waiting, and ends.
func TestWhatAProcessLeavesRunningIsEnded(t *testing.T) {
	for _, test := range []struct {
		role   string
		killed bool
	}{{"leaves a child", false}, {"leaves a stubborn child", true}} {
		s := playing(t, test.role)
		if test.killed {
			s.Grace = 10 * time.Millisecond
		}
		got := run(t, s)
		if got.Code != 0 || got.Cause != "" || len(got.Survivors) != 1 || got.Survivors[0].Killed != test.killed {
			t.Errorf("%s: Run = %+v; want status 0 and one survivor, killed: %v", test.role, got, test.killed)
			continue
		}
		if err := unix.Kill(got.Survivors[0].PID, 0); err == nil && running(got.Survivors[0].PID) {
			t.Errorf("%s: the survivor still runs", test.role)
		}
	}
}

// running reports whether a process is more than a zombie.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}
