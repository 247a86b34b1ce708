package doctor_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"mailboxd/internal/operating/doctor"
)

func TestDoctorSaysWhyTheRunnerOfAMachineGetsNoTasks(t *testing.T) {
	for name, tc := range map[string]struct {
		runner doctor.Runner
		state  doctor.Grade
		says   string
		hint   string
	}{
		"all is well": {doctor.Runner{File: "runner.yaml", State: t.TempDir()}, doctor.OK, "runner.yaml can be used", ""},
		"a mistake": {doctor.Runner{File: "runner.yaml", Err: errors.New("slots: is no number")}, doctor.Bad,
			"slots: is no number", "correct runner.yaml"},
		"a full disk": {doctor.Runner{State: t.TempDir(), MinFree: 1 << 62}, doctor.Bad, "are free for its state", "df -h"},
		"the owner says": {doctor.Runner{State: t.TempDir(), NoJobs: "its clock differs by 1h0m0s; set it"}, doctor.Bad,
			"gives it no tasks: its clock differs by 1h0m0s; set it", "mailboxd runners"},
	} {
		found := doctor.Examine(t.Context(), doctor.Options{Err: errors.New("there is no daemon here"), Runner: &tc.runner})
		var f doctor.Finding
		for _, one := range found {
			if one.Check == "runner.yaml" {
				f = one
			}
		}
		if f.State != tc.state || !strings.Contains(f.Finding, tc.says) || !strings.Contains(f.Hint, tc.hint) {
			t.Errorf("%s: %+v", name, f)
		}
	}
	found := doctor.Examine(t.Context(), doctor.Options{Err: errors.New("there is no daemon here")})
	if slices.ContainsFunc(found, func(f doctor.Finding) bool { return f.Check == "runner.yaml" }) {
		t.Error("a machine without a runner has a finding about it")
	}
}
