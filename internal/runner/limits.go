package runner

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/internal/task"
)

// lookInterval is how often a run is looked at, for what no timer can tell:
// its output, and a wall clock that somebody sets.
const lookInterval = 100 * time.Millisecond

// limits knows when a run has to end.
type limits struct {
	spec   Spec
	output output
	began  time.Time
	alive  time.Time // when it last showed a sign of life
	life   sign      // what it had shown by then
	said   time.Time // when its answer last changed; zero: there is none
	answer sign      // what the answer was by then

	asleep time.Duration // how long the machine had been suspended when it began
}

// A sign of life is anything of a run that changes while it works.
type sign struct {
	output   int64
	progress int64
	touched  time.Time
}

// look notes what a file shows, if it is there.
func (s *sign) look(path string) {
	if path == "" {
		return
	}
	if info, err := os.Stat(path); err == nil {
		s.progress, s.touched = info.Size(), info.ModTime()
	}
}

func newLimits(s Spec, o output, began time.Time) *limits {
	s.Deadline = s.Deadline.Round(0) // wall clock only: a deadline moves with it
	return &limits{spec: s, output: o, began: began, alive: began, asleep: suspended()}
}

// exceeded returns the limit that is reached at now, or "". Durations go on
// while the machine is suspended, as they do for whoever waits for the answer.
func (l *limits) exceeded(now time.Time) task.Cause {
	sum, largest := l.output.size()
	lived := now.Add(suspended() - l.asleep)
	l.notice(lived, sum)
	l.listen(lived)
	s := l.spec
	switch {
	case s.MaxOutput > 0 && max(largest, answerSize(s.Answer)) > s.MaxOutput:
		return task.CauseOutputTooLarge
	case s.Timeout > 0 && lived.Sub(l.began) >= s.Timeout:
		return task.CauseTimeout
	case !s.Deadline.IsZero() && !now.Before(s.Deadline):
		return task.CauseDeadline
	case !l.said.IsZero() && lived.Sub(l.said) >= s.ExitTimeout:
		return task.CauseExitTimeout
	case s.IdleTimeout > 0 && lived.Sub(l.alive) >= s.IdleTimeout:
		return task.CauseIdleTimeout
	}
	return ""
}

// notice notes a sign of life.
func (l *limits) notice(now time.Time, written int64) {
	if l.spec.IdleTimeout <= 0 {
		return
	}
	shown := sign{output: written}
	shown.look(l.spec.Progress)
	if shown != l.life {
		l.life, l.alive = shown, now
	}
}

// listen notes that there is an answer, or another one.
func (l *limits) listen(now time.Time) {
	if l.spec.ExitTimeout <= 0 {
		return
	}
	var heard sign
	heard.look(l.spec.Answer)
	if heard == l.answer {
		return
	}
	l.answer, l.said = heard, now
	if heard.progress == 0 {
		l.said = time.Time{} // empty, or taken back
	}
}

// suspended returns how long the machine has been suspended since its start.
func suspended() time.Duration {
	var boot, awake unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &awake) != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil {
		return 0
	}
	const noise = time.Millisecond // between the two readings
	return time.Duration(boot.Nano() - awake.Nano()).Truncate(noise)
}

// next returns how long to wait before the run is looked at again.
func (l *limits) next(now time.Time) time.Duration {
	wait := lookInterval
	if l.spec.Timeout > 0 {
		wait = min(wait, l.began.Add(l.spec.Timeout).Sub(now))
	}
	if !l.spec.Deadline.IsZero() {
		wait = min(wait, l.spec.Deadline.Sub(now))
	}
	if l.spec.IdleTimeout > 0 {
		wait = min(wait, l.alive.Add(l.spec.IdleTimeout).Sub(now))
	}
	return max(wait, time.Millisecond)
}
