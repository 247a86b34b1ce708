package owner_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/owner"
	process "mailboxd/internal/running/runner"
)

func jobFor(t *testing.T) task.Job {
	return task.Job{
		Task: envelope.Task{ID: "t1", Agent: "trainer", Raw: []byte(`{}`), Sensitivity: envelope.Internal}, Revision: 1, Attempt: 1, RunID: "r1",
		Dir: filepath.Join(t.TempDir(), "t1.1.1"),
	}
}

// run has the owner run a job, and returns its outcome.
func (m *mailboxOwner) run(t *testing.T, ctx context.Context, j task.Job) <-chan task.Outcome {
	outcome := make(chan task.Outcome, 1)
	background(t, func() { outcome <- m.Run(ctx, j, func(process.Process) {}) })
	return outcome
}

// begin has the owner run a job, and returns it with its assignment, its outcome, and what the runner got.
func (m *mailboxOwner) begin(t *testing.T, s *stub, j task.Job) (task.Job, <-chan task.Outcome, fleet.Job) {
	t.Helper()
	j = m.assign(t, 7, j)
	outcome := m.run(t, context.WithoutCancel(t.Context()), j)
	return j, outcome, s.job()
}

// background runs a function that ends before the test does, and returns what waits for that.
func background(t *testing.T, do func()) (wait func()) {
	var group sync.WaitGroup
	group.Go(do)
	t.Cleanup(group.Wait)
	return group.Wait
}

func await[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(time.Minute):
		t.Fatalf("%s has not come", what)
		panic("unreachable")
	}
}

func TestARunOfAnEarlierDaemonKeepsItsDeadline(t *testing.T) {
	m, s := start(t)
	j := jobFor(t)
	j.Deadline = time.Now().Add(time.Hour)
	j, outcome, job := m.begin(t, s, j)
	s.lists([]fleet.RunReport{{Token: job.Token, State: fleet.Began}})
	m.stop()
	await(t, "the end of the wait", outcome)
	again := startOwner(t, m.url, m.dir)
	await(t, "a runner", again.places)
	detached, stop := context.WithCancelCause(t.Context())
	stop(process.ErrDetach)
	again.Recover(detached, j)
	if a, open := again.Assigned(job.Token); !open || !a.Deadline.Equal(j.Deadline) {
		t.Errorf("the deadline of the run is %v; want %v", a.Deadline, j.Deadline)
	}
}

// Its runner doesn't end it at the end of its lease, so another one would run beside it.
func TestARunThatItsRunnerMayNotRepeatIsNotRepeatedAfterARestart(t *testing.T) {
	mayRepeat := func(o *owner.Options) { o.Idempotent = func(string) bool { return true } }
	m, s := start(t, mayRepeat)
	j, outcome, job := m.begin(t, s, jobFor(t))
	if job.Idempotent {
		t.Error("the runner may repeat the run, which it didn't announce")
	}
	s.lists([]fleet.RunReport{{Token: job.Token, State: fleet.Began}})
	m.stop()
	await(t, "the end of the wait", outcome)
	again := startOwner(t, m.url, m.dir, mayRepeat)
	await(t, "a runner", again.places)
	detached, stop := context.WithCancelCause(t.Context())
	stop(process.ErrDetach)
	again.Recover(detached, j)
	if a, open := again.Assigned(job.Token); !open || a.Idempotent {
		t.Errorf("the run is %+v; want that it isn't repeated", a)
	}
}

func TestATaskIsToldThatItsRunnerIsReachedAfterARestart(t *testing.T) {
	m, s := start(t)
	j, outcome, job := m.begin(t, s, jobFor(t))
	m.stop()
	await(t, "the end of the wait", outcome)
	s.lists([]fleet.RunReport{{Token: job.Token, State: fleet.Began}})
	again := startOwner(t, m.url, m.dir)
	reached := make(chan bool, 1)
	j.Reach = func(reachable bool, _ time.Time) error {
		reached <- reachable
		return nil
	}
	run, stop := context.WithCancelCause(t.Context())
	background(t, func() { again.Recover(run, j) })
	if !await(t, "whether the runner can be reached", reached) {
		t.Error("the runner can't be reached")
	}
	stop(process.ErrDetach)
}

// The queue asks the owner for room while the connection may take a minute for what it sends.
func TestTheQueueDoesNotWaitForTheHub(t *testing.T) {
	m, s := start(t)
	j, outcome, job := m.begin(t, s, jobFor(t))
	sent := make(chan struct{})
	m.StopFollowing(job.Token, func() { <-sent })
	background(t, func() { s.done(job.Token, "done") })
	await(t, "the outcome", outcome)
	m.end(job.Token, fleet.PastSettled)
	settled := make(chan struct{})
	background(t, func() { m.Settled(j.At); close(settled) })
	free := make(chan bool, 1)
	background(t, func() {
		for m.Awaits(job.Token) {
			runtime.Gosched()
		}
		free <- m.Free("trainer")
	})
	select {
	case <-free:
	case <-time.After(10 * time.Second):
		t.Error("the owner doesn't say whether there is room")
	}
	close(sent)
	<-settled
}

func TestARunnerForWhichTheHubKeepsNoFilesIsUnavailable(t *testing.T) {
	m, _ := start(t)
	await(t, "a runner", m.places)
	m.NoteHub("gpu-1", errors.New("insufficient storage"))
	if s := m.Runners()[0]; s.Status != fleet.Unavailable || !strings.Contains(s.Reason, "insufficient storage") || s.Next == "" {
		t.Errorf("the runner is %s: %s; %s", s.Status, s.Reason, s.Next)
	}
	m.NoteHub("gpu-1", nil)
	if s := m.Runners()[0]; s.Status != fleet.Ready {
		t.Errorf("the runner is %s: %s; want it ready", s.Status, s.Reason)
	}
}

func TestAJobWithoutFilesGoesToARunnerForWhichTheHubKeepsNone(t *testing.T) {
	m, s := start(t)
	await(t, "a runner", m.places)
	m.NoteHub("gpu-1", errors.New("insufficient storage"))
	j, outcome, job := m.begin(t, s, jobFor(t))
	background(t, func() { s.done(job.Token, "done") })
	await(t, "the outcome", outcome)
	m.end(job.Token, fleet.PastSettled)
	m.Settled(j.At)
}

func TestARunGoesToARunnerAndItsAnswerAndFilesComeBack(t *testing.T) {
	m, s := start(t)
	j, outcome, job := m.begin(t, s, jobFor(t))
	seq, revision, attempt := job.Token.Task()
	if seq != 7 || revision != 1 || attempt != 1 || string(job.Token) != j.At.Token || job.Digest != digest {
		t.Errorf("the job is %+v; want task 7 at its first attempt, with the digest of the runner", job)
	}
	log, err := s.link.Put(t.Context(), fleet.ObjectLog, "log-1", "", strings.NewReader("one line\n"))
	if err != nil {
		t.Fatal(err)
	}
	extra, err := s.link.Put(t.Context(), fleet.ObjectArtifact, "more-1", "out/model.txt", strings.NewReader("weights"))
	if err != nil {
		t.Fatal(err)
	}
	replies := make(chan fleet.DoneReply, 1)
	background(t, func() { replies <- s.done(job.Token, "done there", log, extra) })
	got := await(t, "the outcome", outcome)
	if r := got.Result; r.Status != envelope.OK || r.Output.Summary != "done there" || r.TaskID != "t1" || r.AgentID != "trainer" {
		t.Errorf("the result is %+v; want the runner's answer with the ids of the task", r)
	}
	select {
	case reply := <-replies:
		t.Errorf("the runner got %+v before the end was durable", reply)
	default:
	}
	m.end(job.Token, fleet.PastSettled)
	m.Settled(j.At)
	if reply := await(t, "the answer", replies); !reply.Settled {
		t.Errorf("the runner got %+v; want that the outcome is settled", reply)
	}
	for name, want := range map[string]string{process.StdoutFile: "one line\n", "out/model.txt": "weights"} {
		if text, err := os.ReadFile(filepath.Join(j.Dir, name)); err != nil || string(text) != want {
			t.Errorf("%s has %q, %v; want %q", name, text, err, want)
		}
	}
}

func TestFilesOfARunAreNamedInTheDirectoryOfTheOwner(t *testing.T) {
	m, s := start(t)
	j, outcome, job := m.begin(t, s, jobFor(t))
	text, err := fleet.EncodeLarge(fleet.Outcome{Result: envelope.Result{
		Status:    envelope.OK,
		Artifacts: []envelope.Ref{{Kind: "run_trace", URI: "run:"}, {Kind: "stdout", URI: "run:stdout"}, {Kind: "other", URI: "run:../x"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	background(t, func() {
		_, _, _ = s.link.Done(t.Context(), fleet.Done{Report: s.next(), Token: job.Token, Outcome: text})
	})
	want := []string{"file://" + j.Dir, "file://" + j.Dir + "/stdout", "run:../x"}
	for i, ref := range await(t, "the outcome", outcome).Result.Artifacts {
		if ref.URI != want[i] {
			t.Errorf("%s is at %s; want %s", ref.Kind, ref.URI, want[i])
		}
	}
	m.end(job.Token, fleet.PastSettled)
	m.Settled(j.At)
}

func TestARunGoesOnUnderItsTokenWhenTheOwnerStartsAgain(t *testing.T) {
	m, s := start(t)
	j, outcome, job := m.begin(t, s, jobFor(t))
	s.lists([]fleet.RunReport{{Token: job.Token, State: fleet.Began}})
	m.stop()
	if got := await(t, "the end of the wait", outcome); !got.Detached {
		t.Errorf("the outcome is %+v; want that the run goes on", got)
	}
	again := startOwner(t, m.url, m.dir)
	recovered := make(chan task.Outcome, 1)
	background(t, func() { recovered <- again.Recover(t.Context(), j) })
	wait := background(t, func() { s.done(job.Token, "still here") })
	if got := await(t, "the outcome", recovered); got.Result.Output.Summary != "still here" {
		t.Errorf("the outcome is %+v; want the answer of the same token", got)
	}
	again.end(job.Token, fleet.PastSettled)
	again.Settled(j.At)
	wait()
	if list := again.Runners(); len(list) != 1 || list[0].Name != "gpu-1" || len(again.Bindings("trainer")) != 1 {
		t.Errorf("known runners are %+v", list)
	}
}

func TestAnAnswerAfterTheEndOfItsRunIsKeptForReviewOnce(t *testing.T) {
	m, s := start(t)
	j, outcome, job := m.begin(t, s, jobFor(t))
	if err := m.Abandon("t1", "ann: its disk died"); err != nil {
		t.Fatal(err)
	}
	if got := await(t, "the outcome", outcome); got.Result.Error.Kind != envelope.RunLost ||
		!strings.Contains(got.Result.Error.Message, "abandoned by ann: its disk died") {
		t.Errorf("the outcome is %+v; want a lost run, and who abandoned it", got.Result)
	}
	m.end(job.Token, fleet.PastClosed)
	m.Settled(j.At)
	lost := fleet.Object{Kind: fleet.ObjectLog, Key: "lost", Size: 1, SHA256: digest}
	if reply := s.sendDone(job.Token, "too late", lost); !reply.Missing || reply.Fenced != "" {
		t.Errorf("a late answer whose files are not at the hub got %+v; want that they are missing", reply)
	}
	log, err := s.link.Put(t.Context(), fleet.ObjectLog, "log-1", "", strings.NewReader("one line\n"))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if reply := s.done(job.Token, "too late", log); reply.Fenced == "" {
			t.Errorf("the late answer got %+v; want that it came too late", reply)
		}
	}
	late := await(t, "the event", m.fenced)
	if late.Status != envelope.OK || late.Summary != "too late" || late.Run != (task.RunName{Task: 7, Attempt: 1}) || late.Why == "" {
		t.Errorf("the late answer is %+v", late)
	}
	for file, want := range map[string]string{late.File: "too late", filepath.Join(filepath.Dir(late.File), process.StdoutFile): "one line\n"} {
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s has %q, %v; want %q", file, text, err, want)
		}
	}
	if len(m.fenced) > 0 {
		t.Error("the late answer has two events")
	}
}

func TestARunThatItsRunnerVoidedNeverBegan(t *testing.T) {
	m, s := start(t)
	j, outcome, job := m.begin(t, s, jobFor(t))
	s.lists(nil, job.Token)
	if _, err := s.link.Beat(t.Context(), fleet.Beat{Report: s.next()}); err != nil {
		t.Fatal(err)
	}
	if got := await(t, "the outcome", outcome); got.Void == nil {
		t.Errorf("the outcome is %+v; want that the run never began", got)
	}
	m.Settled(j.At)
}

func TestACancellationReachesItsRunnerAtOnce(t *testing.T) {
	m, s := start(t)
	j := m.assign(t, 7, jobFor(t))
	ctx, cancel := context.WithCancelCause(t.Context())
	outcome := m.run(t, ctx, j)
	job := s.job()
	cancel(errors.New("cancelled by ann"))
	if o := await(t, "the order, which the stub doesn't ask for", s.orders); o.Cancel != job.Token {
		t.Errorf("the order is %+v; want that the run is cancelled", o)
	}
	wait := background(t, func() { s.done(job.Token, "stopped") })
	await(t, "the outcome", outcome)
	m.end(job.Token, fleet.PastSettled)
	m.Settled(j.At)
	wait()
}

func TestAMalformedMessageChangesNothingAndStopsItsRunner(t *testing.T) {
	m, s := start(t)
	_, outcome, job := m.begin(t, s, jobFor(t))
	c := raw(t, m.url)
	message := &nats.Msg{
		Subject: "mbx.team.beat.gpu-1", Reply: "_INBOX.team.gpu-1.x", Header: nats.Header{"Mbx-Runner": {"gpu-1"}},
		Data: []byte(`{"runner":"gpu-2"`),
	}
	if err := errors.Join(c.PublishMsg(message), c.PublishMsg(message), c.Flush()); err != nil {
		t.Fatal(err)
	}
	if why := await(t, "the event", m.closed); !strings.Contains(why, "malformed") {
		t.Errorf("the link is closed because %q", why)
	}
	if list := m.Runners(); list[0].Status != fleet.Unavailable || list[0].Next == "" {
		t.Errorf("the runner is %+v; want it unavailable, with what to do", list[0])
	}
	if err := m.Remove("gpu-1"); err != nil {
		t.Fatal(err)
	}
	if got := await(t, "the outcome", outcome); got.Result.Error.Kind != envelope.RunLost {
		t.Errorf("the outcome is %+v; want a lost run of %s", got, job.Token)
	}
}
