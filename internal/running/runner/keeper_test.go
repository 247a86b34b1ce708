package runner_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
)

// keepRuns is what the test binary does as a keeper.
func keepRuns() {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM)
	defer stop()
	failWrites()
	if err := runner.Keep(ctx, os.Args[2], os.Args[3], nil); err != nil {
		panic(err)
	}
}

// keepers opens the keepers of a directory for a build of the test binary.
func keepers(t testing.TB, dir, build string) *runner.Keepers {
	t.Helper()
	k, err := runner.OpenKeepers(dir, build, []string{"keeper", "keeper"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k
}

func keptRun(t testing.TB, k *runner.Keepers, s runner.Spec) task.Exit {
	t.Helper()
	exit, err := k.Run(t.Context(), s, nil)
	if err != nil {
		t.Fatalf("Run(%q) = %v", s.Argv, err)
	}
	return exit
}

func TestAKeeperRunsAsWeWould(t *testing.T) {
	k := keepers(t, t.TempDir(), "a")
	s := playing(t, "exit3")
	noted := runner.Process{}
	got, err := k.Run(t.Context(), s, func(p runner.Process) { noted = p })
	if err != nil || got.Code != 3 || got.Cause != "" || got.PID != noted.PID {
		t.Errorf("Run(exit3) = %+v, %v, started %+v; want status 3", got, err, noted)
	}
	if there, ok, err := runner.ReadExit(s.Dir); !ok || err != nil || there.Code != 3 {
		t.Errorf("ReadExit = %+v, %v, %v; want status 3", there, ok, err)
	}
	if _, ok := errors.AsType[*runner.SpawnError](second(k.Run(t.Context(), s, nil))); !ok {
		t.Error("the second run in a directory was not refused")
	}
}

func second[T any](_ T, err error) error { return err }

// detached starts a run and leaves it to the keeper when its process plays.
func detached(t *testing.T, k *runner.Keepers, s runner.Spec) runner.Process {
	t.Helper()
	return detachedAfter(t, k, s, func() { wait(filepath.Join(s.Dir, "ready")) })
}

// detachedAfter starts a run, and leaves it to the keeper after something.
func detachedAfter(t *testing.T, k *runner.Keepers, s runner.Spec, something func()) runner.Process {
	t.Helper()
	ctx, leave := context.WithCancelCause(t.Context())
	var self runner.Process
	_, err := k.Run(ctx, s, func(p runner.Process) {
		self = p
		something()
		leave(runner.ErrDetach)
	})
	if !errors.Is(err, runner.ErrDetach) {
		t.Fatalf("Run = %v; want %v", err, runner.ErrDetach)
	}
	return self
}

func TestARunThatIsLeftGoesOnAndTellsTheNextHowItEnded(t *testing.T) {
	dir := t.TempDir()
	s := playing(t, "says so, is told, exits 7")
	self := detached(t, keepers(t, dir, "a"), s)
	if !runner.Alive(self) {
		t.Fatal("the process ended when its client left")
	}
	next := keepers(t, dir, "b") // a newer build
	var waiting sync.WaitGroup
	waiting.Go(func() {
		got, known, err := next.Await(t.Context(), s.Dir)
		if err != nil || !known || got.Code != 7 || got.PID != self.PID {
			t.Errorf("Await = %+v, %v, %v; want status 7 of process %d", got, known, err, self.PID)
		}
	})
	tell(t, s)
	waiting.Wait()
	if got, known, err := next.Await(t.Context(), s.Dir); err != nil || !known || got.Code != 7 {
		t.Errorf("Await once more = %+v, %v, %v; want status 7", got, known, err)
	}
}

func TestTheSlackOfAKeepersTimersIsItsOwn(t *testing.T) {
	k, s := keepers(t, t.TempDir(), "a"), playing(t, "slack")
	keptRun(t, k, s)
	ours := fmt.Sprint(unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0))
	if got := read(t, s, runner.StdoutFile); got != ours {
		t.Errorf("the process of a run has timers with a slack of %s ns; want ours, %s", got, ours)
	}
}

// tell lets a process go on that waits to be told.
func tell(t *testing.T, s runner.Spec) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(s.Dir, "ready"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
}

func TestWhoeverAwaitsARunCanEndIt(t *testing.T) {
	dir := t.TempDir()
	k := keepers(t, dir, "a")
	s := playing(t, "hang, and say so")
	detached(t, k, s)
	ctx, stop := context.WithCancelCause(t.Context())
	stop(errors.New("enough"))
	got, known, err := k.Await(ctx, s.Dir)
	if err != nil || !known || got.Cause != task.CauseInterrupted || got.Reason != "enough" {
		t.Errorf("Await = %+v, %v, %v; want it interrupted, for enough", got, known, err)
	}
}

func TestLimitsHoldWhileNobodyIsThere(t *testing.T) {
	k := keepers(t, t.TempDir(), "a")
	s := playing(t, "hang, and say so")
	s.Timeout = 200 * time.Millisecond
	detachedAfter(t, k, s, func() {}) // its process may not play before it is ended
	got, known, err := k.Await(t.Context(), s.Dir)
	if err != nil || !known || got.Cause != task.CauseTimeout {
		t.Errorf("Await = %+v, %v, %v; want cause %s", got, known, err, task.CauseTimeout)
	}
}

// keeperOf returns the process that keeps the runs of a build: the parent of
// any of them.
func keeperOf(t *testing.T, p runner.Process) int {
	t.Helper()
	return parent(t, p.PID)
}

func TestAKeeperHasANameOfItsOwn(t *testing.T) {
	k := keepers(t, t.TempDir(), "a")
	s := playing(t, "hang, and say so")
	keeper := keeperOf(t, detached(t, k, s))
	defer endRun(t, k, s.Dir)
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", keeper))
	if err != nil || string(name) != "mailboxd-keeper\n" {
		t.Errorf("the keeper is named %q, %v; want mailboxd-keeper", name, err)
	}
}

func TestARunWhoseKeeperIsKilledIsLostAndLeavesNothing(t *testing.T) {
	k := keepers(t, t.TempDir(), "a")
	s := playing(t, "grows a tree and stays")
	s.Grace = 50 * time.Millisecond
	var self runner.Process
	got, err := k.Run(t.Context(), s, func(p runner.Process) {
		self = p
		wait(filepath.Join(s.Dir, "ready"))
		unix.Kill(keeperOf(t, p), unix.SIGKILL)
	})
	if err != nil || got.Cause != task.CauseLost || got.Code != -1 {
		t.Errorf("Run = %+v, %v; want cause %s", got, err, task.CauseLost)
	}
	if left := inside(t, s.Dir); runner.Alive(self) || len(left) > 0 {
		t.Errorf("left over of the lost run: %v", left)
	}
	if got := keptRun(t, k, playing(t, "exit3")); got.Code != 3 {
		t.Errorf("the next Run = %+v; want status 3, by a new keeper", got)
	}
}

func TestTwoWhoStartAKeeperShareIt(t *testing.T) {
	dir := t.TempDir()
	var starting sync.WaitGroup
	found := make([]int, 4)
	for i := range found {
		k := keepers(t, dir, "a")
		s := playing(t, "hang, and say so")
		starting.Go(func() { found[i] = keeperOf(t, detached(t, k, s)) })
		t.Cleanup(func() { endRun(t, k, s.Dir) })
	}
	starting.Wait()
	for _, pid := range found {
		if pid != found[0] {
			t.Errorf("keepers %v; want one", found)
		}
	}
}

func endRun(t *testing.T, k *runner.Keepers, dir string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, _, err := k.Await(ctx, dir); err != nil {
		t.Error(err)
	}
}

func TestAKeeperLeavesWithItsLastClientAndTakesItsFilesAlong(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long/", 40)) // longer than an address may be
	k, err := runner.OpenKeepers(dir, "a", []string{"keeper", "keeper"})
	if err != nil {
		t.Fatal(err)
	}
	keptRun(t, k, playing(t, "exit3"))
	left := whenKeeperLeaves(t, dir)
	if err := k.Close(); err != nil {
		t.Error(err)
	}
	left() // on a busy machine it may still be putting the run away when it is asked to leave
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("in the directory are %v, %v; want nothing", files, err)
	}
}

// whenKeeperLeaves returns a function that blocks until the keeper of build "a" is gone.
// Its lock is held until then.
func whenKeeperLeaves(t *testing.T, dir string) (left func()) {
	t.Helper()
	lock, err := os.Open(filepath.Join(dir, "a.lock"))
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		defer lock.Close()
		err := unix.Flock(int(lock.Fd()), unix.LOCK_EX)
		for errors.Is(err, unix.EINTR) {
			err = unix.Flock(int(lock.Fd()), unix.LOCK_EX)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestAKeeperHoldsNothingOfFinishedRuns(t *testing.T) {
	k := keepers(t, t.TempDir(), "a")
	resident := playing(t, "hang, and say so")
	keeper := keeperOf(t, detached(t, k, resident))
	defer endRun(t, k, resident.Dir)
	descriptors := func() int {
		t.Helper()
		keptRun(t, k, playing(t, "leaves a child"))
		fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", keeper))
		if err != nil {
			t.Fatal(err)
		}
		return len(fds)
	}
	before := descriptors()
	for range 20 {
		descriptors()
	}
	// One may be open for a moment when we look; what is kept for each run would be twenty.
	if after := descriptors(); after > before+5 {
		t.Errorf("the keeper has %d descriptors after 20 runs; want about %d", after, before)
	}
}

func TestAKeeperIsNotTakenForWhatItsLastRunLeft(t *testing.T) {
	dir := t.TempDir()
	resident := playing(t, "hang, and say so")
	k := keepers(t, dir, "a")
	self := detached(t, k, resident)
	t.Cleanup(func() { endRun(t, k, resident.Dir) })
	last := playing(t, "exit3")
	keptRun(t, k, last)
	got, known, err := keepers(t, dir, "b").Await(t.Context(), last.Dir)
	if err != nil || !known || got.Code != 3 || len(got.Survivors) > 0 {
		t.Errorf("Await = %+v, %v, %v; want status 3, and nothing left of the run", got, known, err)
	}
	if !runner.Alive(self) {
		t.Error("another run of the keeper was ended")
	}
}

func TestAVoidRunIsNeverStarted(t *testing.T) {
	k := keepers(t, t.TempDir(), "a")
	s := playing(t, "exit3")
	for range 2 {
		if !runner.Void(s.Dir) {
			t.Fatal("Void(nothing was started) = false")
		}
	}
	if _, ok := errors.AsType[*runner.SpawnError](second(k.Run(t.Context(), s, nil))); !ok {
		t.Error("a run that was void was started")
	}
	s = playing(t, "exit3")
	keptRun(t, k, s)
	if runner.Void(s.Dir) {
		t.Error("Void(a run that was) = true")
	}
}

func TestTextReachesAKeeperByteByByte(t *testing.T) {
	k := keepers(t, t.TempDir(), "a")
	s := playing(t, "environ")
	s.Env = append(s.Env, "ODD=\xff\xfe\x01 <&>")
	keptRun(t, k, s)
	if got := read(t, s, runner.StdoutFile); !strings.Contains(got, "ODD=\xff\xfe\x01 <&>\n") {
		t.Errorf("the environment is %q; want the odd bytes in it", got)
	}
}

func TestAKeeperThatIsToldToStopEndsItsRuns(t *testing.T) {
	k := keepers(t, t.TempDir(), "a")
	s := playing(t, "hang, and say so")
	got, err := k.Run(t.Context(), s, func(p runner.Process) {
		wait(filepath.Join(s.Dir, "ready"))
		unix.Kill(keeperOf(t, p), unix.SIGTERM)
	})
	if err != nil || got.Cause != task.CauseInterrupted {
		t.Errorf("Run = %+v, %v; want cause %s", got, err, task.CauseInterrupted)
	}
	if got := keptRun(t, k, playing(t, "exit3")); got.Code != 3 {
		t.Errorf("the next Run = %+v; want status 3, by a new keeper", got)
	}
}

func TestHowARunEndedIsKnownAlsoWhenItCannotBeWritten(t *testing.T) {
	k := keepers(t, t.TempDir(), "a")
	s := playing(t, "exit3")
	if err := os.Mkdir(filepath.Join(s.Dir, runner.ExitFile), 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := k.Run(t.Context(), s, nil); err == nil || got.Code != 3 {
		t.Errorf("Run = %+v, %v; want status 3 and an error", got, err)
	}
	if got, known, err := k.Await(t.Context(), s.Dir); err != nil && !known || got.Code != 3 {
		t.Errorf("Await = %+v, %v, %v; want status 3", got, known, err)
	}
}
