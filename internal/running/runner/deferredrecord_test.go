package runner_test

import (
	"os"
	"path/filepath"
	"testing"

	"mailboxd/internal/running/runner"
)

// written reports whether a run directory says how its run ended.
func written(t *testing.T, s runner.Spec) bool {
	t.Helper()
	exit, ok, err := runner.ReadExit(s.Dir)
	if err != nil || ok && exit.PID == 0 {
		t.Fatalf("ReadExit = %+v, %v, %v", exit, ok, err)
	}
	_, started, err := runner.ReadMeta(s.Dir)
	if err != nil || started != ok {
		t.Errorf("ReadMeta reports %v, %v; want %v, as ReadExit does", started, err, ok)
	}
	return ok
}

func TestTheEndOfASilentRunIsKnownUntilItIsRemembered(t *testing.T) {
	dir := t.TempDir()
	k := keepers(t, dir, "a")
	s := playing(t, "says nothing")
	want := keptRun(t, k, s)
	if written(t, s) {
		t.Skip("the machine is too busy for a quick run")
	}
	next := keepers(t, dir, "b")
	got, known, err := next.Await(t.Context(), s.Dir)
	if err != nil || !known || got.Code != 0 || got.PID != want.PID {
		t.Errorf("Await = %+v, %v, %v; want %+v", got, known, err, want)
	}
}

func TestTheEndOfASilentRunIsWrittenForAClientThatIsGone(t *testing.T) {
	k, err := runner.OpenKeepers(t.TempDir(), "a", []string{"keeper", "keeper"})
	if err != nil {
		t.Fatal(err)
	}
	remembered, notified := playing(t, "says nothing"), playing(t, "says nothing")
	keptRun(t, k, remembered)
	quick := !written(t, remembered)
	k.Forget(remembered.Dir)
	k.Forget("/never/heard/of")
	keptRun(t, k, notified) // tells the keeper
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	if !written(t, notified) {
		t.Error("nothing is written of a run that nobody remembers")
	}
	if quick && written(t, remembered) {
		t.Error("the end of a run is written that is remembered")
	}
}

func TestARunThatHasSomethingToTellIsWrittenDown(t *testing.T) {
	k := keepers(t, t.TempDir(), "a")
	recorded := playing(t, "says nothing")
	recorded.Recorded = true
	failed, printed, complained := playing(t, "exit3"), playing(t, "where"), playing(t, "complains")
	answered := playing(t, "answers")
	answered.Answer = filepath.Join(answered.Dir, "answer")
	answered.Env = append(answered.Env, "ANSWER="+answered.Answer)
	for name, s := range map[string]runner.Spec{
		"is to be recorded": recorded, "failed": failed, "printed": printed, "complained": complained, "answered": answered,
	} {
		if keptRun(t, k, s); !written(t, s) {
			t.Errorf("nothing is written of a run that %s", name)
		}
	}
}

// What a process of a run cannot shed tells it also where nothing is written.
func TestSweepKnowsTheMarkOfARunOfWhichNothingIsWritten(t *testing.T) {
	k := keepers(t, t.TempDir(), "a")
	s := playing(t, "grows a tree and stays")
	_, err := k.Run(t.Context(), s, func(runner.Process) {
		wait(filepath.Join(s.Dir, "ready"))
		os.Remove(filepath.Join(s.Dir, runner.MetaFile))
		if _, err := runner.Sweep(s.Dir, 0); err != nil {
			t.Error(err)
		}
		if left := inside(t, s.Dir); len(left) > 0 {
			t.Errorf("left after the sweep: %v", left)
		}
	})
	if err != nil {
		t.Error(err)
	}
}
