package main

import (
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

func TestARunWaitsUntilFilesAreCreatedAsFastAsBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gauge{best: 10 * time.Microsecond}
		freed := time.Now()
		look := func() (time.Duration, error) {
			if time.Since(freed) < time.Minute {
				return 400 * time.Microsecond, nil
			}
			return 12 * time.Microsecond, nil
		}
		if err := g.settle(t.Context(), look); err != nil || time.Since(freed) != time.Minute || g.String() != "" {
			t.Errorf("settle = %v after %v, late %d; want nil after a minute", err, time.Since(freed), g.late)
		}
	})
}

func TestARunThatWaitedTooLongBeginsAndTheTableSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, begin := &gauge{best: 10 * time.Microsecond}, time.Now()
		err := g.settle(t.Context(), func() (time.Duration, error) { return 31 * time.Microsecond, nil })
		if err != nil || time.Since(begin) != patience || g.late != 1 || g.String() == "" {
			t.Errorf("settle = %v after %v, %q; want nil after %v, and words", err, time.Since(begin), g, patience)
		}
	})
}

func TestTheFastestPlaceIsTheGauge(t *testing.T) {
	var g gauge
	for _, took := range []time.Duration{400, 10, 29} {
		if err := g.settle(t.Context(), func() (time.Duration, error) { return took, nil }); err != nil {
			t.Fatal(err)
		}
	}
	full := errors.New("full")
	if err := g.settle(t.Context(), func() (time.Duration, error) { return 0, full }); err != full || g.best != 10 {
		t.Errorf("settle = %v, best %v; want %v, 10ns", err, g.best, full)
	}
}

func TestWhatAProbeCreatesStays(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		if took, err := createSome(dir); err != nil || took <= 0 {
			t.Errorf("createSome = %v, %v; want what a file took", took, err)
		}
	}
	if probes, err := os.ReadDir(dir); err != nil || len(probes) != 2 {
		t.Errorf("%d directories, %v; want 2", len(probes), err)
	}
}
