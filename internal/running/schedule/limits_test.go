package schedule_test

import (
	"testing"
	"time"

	"mailboxd/internal/running/schedule"
)

var halfHours = schedule.LimitPause{Short: 30 * time.Second, First: 30 * time.Minute, Longest: 5 * time.Hour}

// named is a limit that ends at a time; quota is one without a time.
func named(at time.Time) schedule.Reached { return schedule.Reached{Named: at} }

var quota schedule.Reached

func TestALimitWithoutATimePausesForTwiceAsLongEachTime(t *testing.T) {
	var l schedule.Limits
	now := time.Date(2026, 11, 23, 21, 0, 0, 0, time.UTC)
	for i, want := range []time.Duration{30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 5 * time.Hour, 5 * time.Hour} {
		until := l.Reach("a", quota, now, halfHours)
		if got := until.Sub(now); got != want {
			t.Errorf("pause %d = %v; want %v", i, got, want)
		}
		if _, holds := l.Holds("a", "t1", until.Add(-1)); !holds {
			t.Errorf("pause %d is over before its end", i)
		}
		if _, holds := l.Holds("a", "t1", until); holds {
			t.Errorf("pause %d is not over at its end", i)
		}
		now = until
	}
	if l.Worked("a", now.Add(-6*time.Hour)); !l.End("a") {
		t.Error("a run that began before the limit has ended it")
	}
	if until := l.Reach("a", quota, now, halfHours); until.Sub(now) != 30*time.Minute {
		t.Errorf("after its end the pause is %v", until.Sub(now))
	}
	if !l.Worked("a", now.Add(1)) || l.Worked("a", now.Add(1)) {
		t.Error("a run that answers after the limit ends it once")
	}
}

func TestAnOverloadPausesShortlyAndTwiceAsLongEachTime(t *testing.T) {
	var l schedule.Limits
	now := time.Date(2026, 11, 23, 21, 0, 0, 0, time.UTC)
	for i, want := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 30 * time.Minute, 30 * time.Minute} {
		until := l.Reach("a", schedule.Reached{Short: true}, now, halfHours)
		if got := until.Sub(now); got != want {
			t.Errorf("pause %d = %v; want %v", i, got, want)
		}
		now = until
	}
}

func TestALimitLastsUntilTheNamedTimeAndLongerWhenThatIsTooEarly(t *testing.T) {
	now := time.Date(2026, 11, 23, 21, 0, 0, 0, time.UTC)
	for after, want := range map[time.Duration][3]time.Duration{
		2 * time.Hour: {2 * time.Hour, 2 * time.Hour, 2 * time.Hour},
		-time.Minute:  {30 * time.Second, time.Minute, 2 * time.Minute},
		0:             {30 * time.Second, time.Minute, 2 * time.Minute},
		time.Second:   {time.Second, time.Minute, 2 * time.Minute},
	} {
		var l schedule.Limits
		now := now
		for i, want := range want {
			until := l.Reach("a", named(now.Add(after)), now, halfHours)
			if until.Sub(now) != want {
				t.Errorf("named in %v, time %d: %v; want %v", after, i, until.Sub(now), want)
			}
			now = until
		}
	}
}

func TestRunsSideBySideReachOneLimit(t *testing.T) {
	var l schedule.Limits
	now := time.Date(2026, 11, 23, 21, 0, 0, 0, time.UTC)
	first := l.Reach("a", quota, now, halfHours)
	if second := l.Reach("a", quota, now.Add(time.Second), halfHours); !second.Equal(first) {
		t.Errorf("until %v, then %v; want the same", first, second)
	}
	if until := l.Reach("a", named(now.Add(2*time.Hour)), now, halfHours); !until.Equal(now.Add(2 * time.Hour)) {
		t.Errorf("until %v; want the named time", until)
	}
	if _, holds := l.Holds("b", "t1", now); holds {
		t.Error("another agent is held")
	}
}

func TestAReleasedTaskStartsAndTheOthersWait(t *testing.T) {
	var l schedule.Limits
	now := time.Date(2026, 11, 23, 21, 0, 0, 0, time.UTC)
	l.Reach("a", quota, now, halfHours)
	l.Release("a", "t1")
	_, first := l.Holds("a", "t1", now)
	_, second := l.Holds("a", "t2", now)
	if first || !second {
		t.Errorf("t1 held: %v, t2 held: %v; want only t2", first, second)
	}
	if until := l.Reach("a", quota, now.Add(time.Minute), halfHours); !until.Equal(now.Add(61 * time.Minute)) {
		t.Errorf("until %v; want an hour, since it was reached again", until)
	}
	if _, first = l.Holds("a", "t1", now); !first {
		t.Error("t1 is not held after it has reached the limit again")
	}
}
