package main

import (
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

func TestARunBeginsWhenThereIsAPlaceWhereCreatingFilesIsFast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gauge
		freed := time.Now()
		look := func() (float64, error) {
			if time.Since(freed) < time.Minute {
				return 40, nil
			}
			return 1.1, nil
		}
		if err := g.settle(t.Context(), look); err != nil || time.Since(freed) != time.Minute || g.String() != "" {
			t.Errorf("settle = %v after %v, late %d; want nil after a minute", err, time.Since(freed), g.late)
		}
	})
}

func TestARunThatWaitedTooLongBeginsAndTheTableSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gauge
		begin := time.Now()
		err := g.settle(t.Context(), func() (float64, error) { return slow + 0.1, nil })
		if err != nil || time.Since(begin) != patience || g.late != 1 || g.String() == "" {
			t.Errorf("settle = %v after %v, %q; want nil after %v, and words", err, time.Since(begin), &g, patience)
		}
	})
}

func TestARunDoesNotBeginWhereNoFileCanBeCreated(t *testing.T) {
	full := errors.New("full")
	if err := new(gauge).settle(t.Context(), func() (float64, error) { return 0, full }); err != full {
		t.Errorf("settle = %v; want %v", err, full)
	}
}

func TestTheFilesOfAProbeStay(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		if times, err := searching(dir); err != nil || times <= 0 {
			t.Errorf("searching = %v, %v; want a ratio", times, err)
		}
	}
	if probes, err := os.ReadDir(dir); err != nil || len(probes) != 2 {
		t.Errorf("%d directories, %v; want 2", len(probes), err)
	}
}
