package owner_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/owner"
	process "mailboxd/internal/running/runner"
	"mailboxd/internal/running/schedule"
)

// refuse has the owner refuse a run that is too sensitive for its runner, and lets that runner take more from then on.
func (m *mailboxOwner) refuse(t *testing.T, s *stub) task.Job {
	t.Helper()
	j := jobFor(t)
	j.Task.Sensitivity = envelope.Confidential
	<-m.places
	_, err := m.Assign(m.Take("trainer"), 7, j)
	unfit, ok := errors.AsType[*schedule.UnfitError](err)
	if !ok || unfit.Why != "the task is confidential, and runner gpu-1 takes at most internal" {
		t.Fatalf("the error is %v; want that no runner may have the run", err)
	}
	s.mu.Lock()
	s.most = "confidential"
	s.mu.Unlock()
	return j
}

// claims has the stub ask for jobs once more, until its next request.
func (s *stub) claims(id string) {
	s.t.Helper()
	if _, err := s.link.Claim(s.t.Context(), fleet.Claim{Report: s.next(), ID: id, Free: 2, By: map[string]int{"trainer": 3}}); err != nil {
		s.t.Fatal(err)
	}
}

func TestARunThatNoRunnerMayHaveGoesToTheFirstOneThatMay(t *testing.T) {
	m, s := start(t)
	j := m.refuse(t, s)
	if m.Held(7, true) {
		t.Error("the runner has room for a task that it may not have")
	}
	s.hello(t.Context())
	s.claims("newer")
	if tasks := await(t, "room of a runner", m.fits); !slices.Equal(tasks, []int64{7}) {
		t.Errorf("a runner has room for the tasks %v; want 7", tasks)
	}
	if j = m.assign(t, 7, j); j.At.Runner != "gpu-1" {
		t.Errorf("the run is at %+v; want it at the runner", j.At)
	}
}

func TestATaskIsToldOfTheRoomThatARunnerGotBeforeTheTaskWasHeld(t *testing.T) {
	m, s := start(t)
	m.refuse(t, s)
	s.hello(t.Context())
	s.claims("first")
	s.claims("second")
	for len(m.fits) > 0 {
		<-m.fits // the task is queued still
	}
	for !m.Free("trainer") {
		await(t, "room of the runner", m.places)
	}
	if !m.Held(7, true) {
		t.Error("the runner has no room for the task")
	}
}

// Its approval is for what the runner had before, so no room will ever be for it.
func TestATaskIsJudgedAgainWhoseRunnerHasAnotherCommand(t *testing.T) {
	m, s := start(t)
	j := jobFor(t)
	j.Digest, j.Plan = "approved", []byte(`{"bindings": ["`+digest+`"]}`)
	j.Task.Sensitivity = envelope.Confidential
	await(t, "a runner", m.places)
	if _, err := m.Assign(m.Take("trainer"), 7, j); err == nil || m.Held(7, true) {
		t.Fatalf("the error is %v; want that no runner may have the run", err)
	}
	s.hello(t.Context()) // with the same command
	if len(m.fits) > 0 {
		t.Errorf("a runner has room for the tasks %v; want none", <-m.fits)
	}
	offers := fleet.Announcement{Version: "v1", Slots: 4, Agents: []fleet.Agent{
		{ID: "trainer", Digest: strings.Repeat("a", 64), Concurrency: 4, MaxSensitivity: "confidential"},
	}}
	if _, err := s.link.Hello(t.Context(), fleet.Hello{Report: s.next(), Announcement: offers}); err != nil {
		t.Fatal(err)
	}
	if tasks := await(t, "the task", m.fits); !slices.Equal(tasks, []int64{7}) {
		t.Errorf("the tasks %v are judged again; want 7", tasks)
	}
}

func TestATaskThatIsHeldNoMoreIsToldOfNoRoom(t *testing.T) {
	m, s := start(t)
	m.refuse(t, s)
	m.Held(7, true)
	m.Held(7, false)
	s.hello(t.Context())
	s.claims("newer")
	if len(m.fits) > 0 {
		t.Errorf("a runner has room for the tasks %v; want none", <-m.fits)
	}
}

func TestAJobWithFilesWaitsWhileTheHubKeepsNoneForItsRunner(t *testing.T) {
	m, s := start(t, func(o *owner.Options) { o.Worktree = func(string) bool { return true } })
	await(t, "a runner", m.places)
	m.NoteHub("gpu-1", errors.New("insufficient storage"))
	_, err := m.Assign(m.Take("trainer"), 7, jobFor(t))
	if unfit, is := errors.AsType[*schedule.UnfitError](err); !is || !strings.Contains(unfit.Why, "insufficient storage") {
		t.Errorf("the error is %v; want that the hub keeps no files", err)
	}
	if m.Held(7, true) {
		t.Error("the runner has room for a job with files")
	}
	m.NoteHub("gpu-1", nil)
	s.claims("newer")
	if tasks := await(t, "room of a runner", m.fits); !slices.Equal(tasks, []int64{7}) {
		t.Errorf("a runner has room for the tasks %v; want 7", tasks)
	}
}

func TestThePlaceOfARunThatCannotBeSentIsThereForAnotherRun(t *testing.T) {
	m, _ := start(t, func(o *owner.Options) { o.Worktree = func(string) bool { return true } })
	var first task.Job
	for n := range int64(4) { // what the runner has slots for
		j := jobFor(t)
		j.Cwd = t.TempDir() // no repository
		first = m.assign(t, n+1, j)
	}
	if m.Free("trainer") {
		t.Error("the claim has room for a fifth run")
	}
	got := m.Run(t.Context(), first, nil)
	if _, unsent := errors.AsType[*schedule.UnsentError](got.Void); !unsent {
		t.Errorf("the outcome is %+v; want that the run was never sent", got)
	}
	if m.Take("trainer") == nil || m.Take("trainer") != nil {
		t.Error("the claim has not one place")
	}
}

// Such as one that was approved for another command: it ends without a job.
func TestARunThatEndsBeforeItIsSentDelaysNoOtherOne(t *testing.T) {
	m, s := start(t)
	first := m.assign(t, 7, jobFor(t))
	second := m.assign(t, 8, jobFor(t))
	ctx, stop := context.WithCancelCause(t.Context())
	outcome := m.run(t, ctx, second)
	m.end(fleet.Token(first.At.Token), fleet.PastClosed)
	m.Settled(first.At)
	began := time.Now()
	if job := s.job(); string(job.Token) != second.At.Token {
		t.Errorf("the job is %s; want that of the second run", job.Token)
	}
	if took := time.Since(began); took > fleet.ClaimWait/2 {
		t.Errorf("the job came after %v", took)
	}
	stop(process.ErrDetach)
	await(t, "the end of the wait", outcome)
}

func TestARequestOfARunnerIsOverWhenTheConnectionIsLost(t *testing.T) {
	hub := startServer(t)
	m, s := startOwner(t, hub.ClientURL(), t.TempDir()), startStub(t, hub.ClientURL())
	s.start()
	for !m.Free("trainer") {
		await(t, "room of the runner", m.places)
	}
	hub.Shutdown()
	for m.Hub() == "" {
		runtime.Gosched()
	}
	if m.Free("trainer") {
		t.Error("a runner that can't be answered has room")
	}
}
