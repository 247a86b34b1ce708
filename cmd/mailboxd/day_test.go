package main

import (
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// dayMargin is how much of a day (UTC) a script may need that counts what a day has.
const dayMargin = time.Minute

// stayInDay begins the rest of a script at the start of the next day if today is nearly over:
// accounts and statistics are kept by day.
func stayInDay(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: oneday")
	}
	if left := leftOfDay(time.Now()); left < dayMargin {
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
