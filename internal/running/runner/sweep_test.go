package runner_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"mailboxd/internal/running/runner"
)

// orphan starts what a daemon that was killed leaves: a process of a run, with
// nobody but the test to reap it.
func orphan(t *testing.T, role string) (runner.Spec, *os.Process) {
	t.Helper()
	s := playing(t, role)
	p, err := os.StartProcess(s.Argv[0], s.Argv, &os.ProcAttr{
		Env:   append(s.Env, runner.DirVariable+"="+s.Dir),
		Files: []*os.File{nil, os.Stdout, os.Stderr},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Kill(); p.Wait() })
	wait(filepath.Join(s.Dir, "ready"))
	return s, p
}

// Row 43: the daemon dies between the start and the record of it.
func TestSweepEndsARunOfWhichNothingIsWritten(t *testing.T) {
	s, p := orphan(t, "hang, and say so")
	got, err := runner.Sweep(s.Dir, time.Minute)
	if err != nil || len(got) != 1 || got[0].PID != p.Pid || got[0].Killed {
		t.Errorf("Sweep = %+v, %v; want process %d ended by SIGTERM", got, err, p.Pid)
	}
	if state, err := p.Wait(); err != nil || state.String() != "signal: terminated" {
		t.Errorf("the process ended with %v, %v; want SIGTERM", state, err)
	}
}

func TestSweepKillsWhoIgnoresSIGTERM(t *testing.T) {
	s, p := orphan(t, "stubborn")
	got, err := runner.Sweep(s.Dir, time.Millisecond)
	if err != nil || len(got) != 1 || !got[0].Killed {
		t.Errorf("Sweep = %+v, %v; want process %d killed", got, err, p.Pid)
	}
}

func TestSweepNeverTakesAReusedNumberForARun(t *testing.T) {
	_, p := orphan(t, "hang, and say so")
	dir := t.TempDir() // another run, whose process had the number before
	meta, err := json.Marshal(runner.Meta{Process: runner.Process{PID: p.Pid, Start: 1, Boot: bootID(t)}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, runner.MetaFile), meta, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := runner.Sweep(dir, 0); err != nil || len(got) != 0 {
		t.Errorf("Sweep = %+v, %v; want nothing found", got, err)
	}
	if !running(p.Pid) {
		t.Error("a process of somebody else was ended")
	}
}

func TestSweepOfAFinishedRunFindsNothing(t *testing.T) {
	s := playing(t, "exit3")
	run(t, s)
	if got, err := runner.Sweep(s.Dir, time.Minute); err != nil || len(got) != 0 {
		t.Errorf("Sweep = %+v, %v; want nothing found", got, err)
	}
}

func TestSweepSaysThatARecordIsUnreadable(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, runner.MetaFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := runner.Sweep(dir, 0); err == nil {
		t.Error("Sweep(half a meta.json) = nil; want an error")
	}
}

func TestAliveTellsAProcessFromItsNumber(t *testing.T) {
	s := playing(t, "hang, and say so")
	var self runner.Process
	s.Timeout = 0
	ctx, stop := cancelled(t)
	if _, err := runner.Run(ctx, s, func(p runner.Process) {
		defer stop()
		self = p
		wait(filepath.Join(s.Dir, "ready"))
		for _, test := range []struct {
			name string
			p    runner.Process
			want bool
		}{
			{"the process", p, true},
			{"another start time", runner.Process{PID: p.PID, Start: p.Start + 1, Boot: p.Boot}, false},
			{"another boot", runner.Process{PID: p.PID, Start: p.Start, Boot: "another"}, false},
			{"the zero value", runner.Process{}, false},
		} {
			if got := runner.Alive(test.p); got != test.want {
				t.Errorf("Alive(%s) = %v; want %v", test.name, got, test.want)
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	if runner.Alive(self) {
		t.Error("Alive = true after the run; want false")
	}
}

func cancelled(t *testing.T) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	return ctx, stop
}

func bootID(t *testing.T) string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(id))
}
