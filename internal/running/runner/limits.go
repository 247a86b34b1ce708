package runner

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/internal/decisions/task"
)

// lookInterval is the time between checks of what timers can't show: output, and changes of
// the wall clock.
const lookInterval = 100 * time.Millisecond

// limits decides when a run has to end.
type limits struct {
	spec       Spec
	output     output
	began      time.Time
	lastActive time.Time // time of the last activity
	progress   fileState // the progress file at that time
	answered   time.Time // when the answer last changed; zero: no answer
	answer     fileState // the answer file at that time

	suspendedBefore time.Duration // how long the machine had been suspended at the start
}

// A fileState is the visible state of a file that can change during a run.
type fileState struct {
	output   int64
	progress int64
	touched  time.Time
}

// update reads the state of a file, if it exists.
func (s *fileState) update(path string) {
	if path == "" {
		return
	}
	if info, err := os.Stat(path); err == nil {
		s.progress, s.touched = info.Size(), info.ModTime()
	}
}

func newLimits(s Spec, o output, began time.Time) *limits {
	s.Deadline = s.Deadline.Round(0) // without the monotonic clock: a deadline follows the wall clock
	return &limits{spec: s, output: o, began: began, lastActive: began, suspendedBefore: suspended()}
}

// exceeded returns the limit that is reached at now, or "". Durations include the time of a
// suspended machine, as for the requester.
func (l *limits) exceeded(now time.Time) task.Cause {
	sum, largest := l.output.size()
	lived := now.Add(suspended() - l.suspendedBefore)
	l.notice(lived, sum)
	l.noticeAnswer(lived)
	s := l.spec
	switch {
	case s.MaxOutput > 0 && max(largest, answerSize(s.Answer)) > s.MaxOutput:
		return task.CauseOutputTooLarge
	case s.Timeout > 0 && lived.Sub(l.began) >= s.Timeout:
		return task.CauseTimeout
	case !s.Deadline.IsZero() && !now.Before(s.Deadline):
		return task.CauseDeadline
	case s.Lease != "" && leaseEnded(s.Lease):
		return task.CauseLease
	case !l.answered.IsZero() && lived.Sub(l.answered) >= s.ExitTimeout:
		return task.CauseExitTimeout
	case s.IdleTimeout > 0 && lived.Sub(l.lastActive) >= s.IdleTimeout:
		return task.CauseIdleTimeout
	}
	return ""
}

// leaseEnded reports whether the lease in a file has ended. One that can't be read has.
func leaseEnded(path string) bool {
	text, err := os.ReadFile(path)
	until, wrong := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	var now unix.Timespec
	return err != nil || wrong != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil || now.Nano() >= until
}

// notice records activity.
func (l *limits) notice(now time.Time, written int64) {
	if l.spec.IdleTimeout <= 0 {
		return
	}
	shown := fileState{output: written}
	shown.update(l.spec.Progress)
	if shown != l.progress {
		l.progress, l.lastActive = shown, now
	}
}

// noticeAnswer records a new or changed answer.
func (l *limits) noticeAnswer(now time.Time) {
	if l.spec.ExitTimeout <= 0 {
		return
	}
	var received fileState
	received.update(l.spec.Answer)
	if received == l.answer {
		return
	}
	l.answer, l.answered = received, now
	if received.progress == 0 {
		l.answered = time.Time{} // empty, or removed
	}
}

// suspended returns how long the machine has been suspended since boot.
func suspended() time.Duration {
	var boot, awake unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &awake) != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil {
		return 0
	}
	const noise = time.Millisecond // between the two readings
	return time.Duration(boot.Nano() - awake.Nano()).Truncate(noise)
}

// next returns the time until the next check.
func (l *limits) next(now time.Time) time.Duration {
	wait := lookInterval
	if l.spec.Timeout > 0 {
		wait = min(wait, l.began.Add(l.spec.Timeout).Sub(now))
	}
	if !l.spec.Deadline.IsZero() {
		wait = min(wait, l.spec.Deadline.Sub(now))
	}
	if l.spec.IdleTimeout > 0 {
		wait = min(wait, l.lastActive.Add(l.spec.IdleTimeout).Sub(now))
	}
	return max(wait, time.Millisecond)
}
