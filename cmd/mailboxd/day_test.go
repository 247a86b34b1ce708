package main

import (
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// stayInDay begins the rest of a script at the start of the next day if less of today is left than it may need, a
// minute or what it says: accounts and statistics are kept by day, and times of earlier days are shown with their day.
func stayInDay(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 1 {
		ts.Fatalf("usage: oneday [duration]")
	}
	needs := time.Minute
	if len(args) > 0 {
		var err error
		needs, err = time.ParseDuration(args[0])
		ts.Check(err)
	}
	if left := leftOfDay(time.Now()); left < needs {
		time.Sleep(left)
	}
}

// leftOfDay returns how long a day (UTC) goes on.
func leftOfDay(now time.Time) time.Duration {
	return now.UTC().Truncate(24*time.Hour).AddDate(0, 0, 1).Sub(now)
}

func TestADayEndsAtMidnightUTC(t *testing.T) {
	at := time.Date(2026, 12, 31, 23, 59, 30, 0, time.FixedZone("", 3600))
	if left := leftOfDay(at); left != time.Hour+30*time.Second {
		t.Errorf("at %s the day goes on for %s; want 1h0m30s", at, left)
	}
}
