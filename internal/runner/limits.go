package runner

import (
	"os"
	"time"
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
}

// A sign of life is anything of a run that changes while it works.
type sign struct {
	output   int64
	progress int64
	touched  time.Time
}

func newLimits(s Spec, o output, began time.Time) *limits {
	s.Deadline = s.Deadline.Round(0) // wall clock only: a deadline moves with it
	return &limits{spec: s, output: o, began: began, alive: began}
}

// exceeded returns the limit that is reached at now, or "".
func (l *limits) exceeded(now time.Time) Cause {
	sum, largest := l.output.size()
	l.notice(now, sum)
	s := l.spec
	switch {
	case s.MaxOutput > 0 && largest > s.MaxOutput:
		return OutputTooLarge
	case s.Timeout > 0 && now.Sub(l.began) >= s.Timeout:
		return Timeout
	case !s.Deadline.IsZero() && !now.Before(s.Deadline):
		return Deadline
	case s.IdleTimeout > 0 && now.Sub(l.alive) >= s.IdleTimeout:
		return IdleTimeout
	}
	return ""
}

// notice notes a sign of life.
func (l *limits) notice(now time.Time, written int64) {
	if l.spec.IdleTimeout <= 0 {
		return
	}
	shown := sign{output: written}
	if l.spec.Progress != "" {
		if info, err := os.Stat(l.spec.Progress); err == nil {
			shown.progress, shown.touched = info.Size(), info.ModTime()
		}
	}
	if shown != l.life {
		l.life, l.alive = shown, now
	}
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
