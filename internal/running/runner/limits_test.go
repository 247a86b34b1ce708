package runner

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/internal/decisions/task"
)

// began is when the runs of these tests begin.
var began = time.Date(2026, 3, 9, 20, 0, 0, 0, time.UTC)

func limited(t *testing.T, s Spec) *limits {
	t.Helper()
	out, err := createOutput(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(out.close)
	return newLimits(s, out, began)
}

func expect(t *testing.T, l *limits, after time.Duration, want task.Cause) {
	t.Helper()
	if got := l.exceeded(began.Add(after)); got != want {
		t.Errorf("after %v: exceeded = %q; want %q", after, got, want)
	}
}

func TestOutputIsASignOfLife(t *testing.T) {
	l := limited(t, Spec{IdleTimeout: time.Minute})
	expect(t, l, 59*time.Second, "")
	if _, err := unix.Write(l.output.stderr, []byte("working\n")); err != nil {
		t.Fatal(err)
	}
	expect(t, l, 60*time.Second, "")
	expect(t, l, 119*time.Second, "")
	expect(t, l, 120*time.Second, task.CauseIdleTimeout)
}

func TestProgressIsASignOfLife(t *testing.T) {
	progress := filepath.Join(t.TempDir(), "progress.jsonl")
	l := limited(t, Spec{IdleTimeout: time.Minute, Progress: progress})
	expect(t, l, 59*time.Second, "")
	if err := os.WriteFile(progress, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, l, 60*time.Second, "")
	expect(t, l, 120*time.Second, task.CauseIdleTimeout)
}

func TestADeadlineMovesWithTheWallClock(t *testing.T) {
	l := limited(t, Spec{Deadline: began.Add(time.Hour)})
	expect(t, l, time.Minute, "")
	expect(t, l, 2*time.Hour, task.CauseDeadline) // somebody set the clock
	if got := l.next(began); got != lookInterval {
		t.Errorf("next = %v; want %v, or a clock that is set goes unnoticed", got, lookInterval)
	}
}

func TestTheNextLookIsAtTheNearestLimit(t *testing.T) {
	l := limited(t, Spec{Timeout: 150 * time.Millisecond})
	for after, want := range map[time.Duration]time.Duration{
		0:                      lookInterval,
		100 * time.Millisecond: 50 * time.Millisecond,
		150 * time.Millisecond: time.Millisecond,
		time.Hour:              time.Millisecond,
	} {
		if got := l.next(began.Add(after)); got != want {
			t.Errorf("after %v: next = %v; want %v", after, got, want)
		}
	}
}

func TestWhoHasAnsweredHasToExit(t *testing.T) {
	answer := filepath.Join(t.TempDir(), "result.json")
	l := limited(t, Spec{ExitTimeout: time.Minute, Answer: answer})
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(answer, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, l, time.Hour, "")
	write("")
	expect(t, l, 2*time.Hour, "") // empty is no answer
	write("{")
	expect(t, l, 3*time.Hour, "")
	write("{}") // still at it
	expect(t, l, 3*time.Hour+59*time.Second, "")
	expect(t, l, 3*time.Hour+118*time.Second, "")
	expect(t, l, 3*time.Hour+119*time.Second, task.CauseExitTimeout)
}
