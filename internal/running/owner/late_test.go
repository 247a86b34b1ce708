package owner_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/owner"
)

// abandoned begins a run that is given up, and sends a file of it.
func abandoned(t *testing.T, m *mailboxOwner, s *stub) (fleet.Job, fleet.Object) {
	t.Helper()
	j, outcome, job := m.begin(t, s, jobFor(t))
	if err := m.Abandon("t1", "ann"); err != nil {
		t.Fatal(err)
	}
	await(t, "the outcome", outcome)
	m.end(job.Token, fleet.PastClosed)
	m.Settled(j.At)
	log, err := s.link.Put(t.Context(), fleet.ObjectLog, "log-1", "", strings.NewReader("one line\n"))
	if err != nil {
		t.Fatal(err)
	}
	return job, log
}

func TestARunnerKeepsALateAnswerUntilTheLedgerHasIt(t *testing.T) {
	failed := make(chan struct{})
	m, s := start(t, func(o *owner.Options) {
		record := o.Fenced
		o.Fenced = func(late task.LateAnswer) error {
			select {
			case <-failed:
				return record(late)
			default:
				close(failed)
				return errors.New("the disk is full")
			}
		}
	})
	job, log := abandoned(t, m, s)
	if reply := s.sendDone(job.Token, "too late", log); !reply.Later || reply.Fenced != "" {
		t.Errorf("the runner got %+v; want that it sends the answer again", reply)
	}
	m.stop() // as if it had been killed
	again := startOwner(t, m.url, m.dir)
	again.end(job.Token, fleet.PastClosed)
	if reply := s.done(job.Token, "too late", log); reply.Fenced == "" {
		t.Errorf("the runner got %+v; want that the answer came too late", reply)
	}
	if late := await(t, "the event", again.fenced); late.Summary != "too late" {
		t.Errorf("the late answer is %+v", late)
	}
}

func TestTheEventOfALateAnswerNamesTheFilesThatAreNotThere(t *testing.T) {
	m, s := start(t, func(o *owner.Options) { o.MaxFile = 4 })
	job, log := abandoned(t, m, s)
	answer := answerOf("too late")
	answer.Left = []fleet.Left{{What: "weights has 300 MiB", Path: "/far/weights"}}
	s.ends(job.Token, answer, log)
	left := strings.Join(await(t, "the event", m.fenced).Left, "\n")
	if !strings.Contains(left, "the output of runner gpu-1 was not taken: it has 9 bytes") || !strings.Contains(left, "/far/weights") {
		t.Errorf("the event names %q; want what stayed there, and what was not taken", left)
	}
}

// Otherwise a daemon that is killed before that begins the run again: its runner has forgotten it.
func TestALateAnswerIsTakenOnlyOnceTheEndOfItsRunIsDurable(t *testing.T) {
	m, s := start(t)
	j, outcome, job := m.begin(t, s, jobFor(t))
	if err := m.Abandon("t1", "ann"); err != nil {
		t.Fatal(err)
	}
	await(t, "the outcome", outcome)
	if reply := s.sendDone(job.Token, "too late"); !reply.Later || reply.Fenced != "" || len(m.fenced) > 0 {
		t.Errorf("the runner got %+v; want that it sends the answer again", reply)
	}
	m.end(job.Token, fleet.PastClosed)
	m.Settled(j.At)
	if reply := s.done(job.Token, "too late"); reply.Fenced == "" {
		t.Errorf("the runner got %+v; want that the answer came too late", reply)
	}
}

// The daemon asks for the outcomes of earlier runs beside the start of the owner, or when a person releases their tasks.
func TestAnAnswerThatComesBeforeItsRunIsAwaitedIsItsAnswer(t *testing.T) {
	m, s := start(t)
	j := m.assign(t, 7, jobFor(t))
	m.stop() // before the job was sent
	again := startOwner(t, m.url, m.dir)
	token := fleet.Token(j.At.Token)
	again.end(token, fleet.PastOpen)
	await(t, "a runner", again.places)
	s.lists([]fleet.RunReport{{Token: token, State: fleet.Began}})
	if reply, err := s.link.Beat(t.Context(), fleet.Beat{Report: s.next()}); err != nil || len(reply.Cancel) > 0 {
		t.Errorf("the runner got %+v, %v; want that its run goes on", reply, err)
	}
	if reply := s.sendDone(token, "early"); !reply.Later {
		t.Errorf("the runner got %+v; want that it sends the answer again", reply)
	}
	outcome := make(chan task.Outcome, 1)
	background(t, func() { outcome <- again.Recover(t.Context(), j) })
	background(t, func() { s.done(token, "early") })
	if got := await(t, "the outcome", outcome); got.Result.Output.Summary != "early" || len(again.fenced) > 0 {
		t.Errorf("the outcome is %+v; want the answer of the runner", got)
	}
	again.end(token, fleet.PastSettled)
	again.Settled(j.At)
}

// silentHub is an object whose description is at the hub, and whose bytes never come.
func silentHub(t *testing.T, m *mailboxOwner) fleet.Object {
	t.Helper()
	js, err := jetstream.New(raw(t, m.url))
	if err != nil {
		t.Fatal(err)
	}
	store, err := js.ObjectStore(t.Context(), "out_gpu-1")
	if err != nil {
		t.Fatal(err)
	}
	info, err := store.PutBytes(t.Context(), "log-1", []byte("one line\n"))
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), "OBJ_out_gpu-1")
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(t.Context(), jetstream.WithPurgeSubject("$O.out_gpu-1.C."+info.NUID)); err != nil {
		t.Fatal(err)
	}
	return fleet.Object{Kind: fleet.ObjectLog, Key: "log-1", Size: 9, SHA256: digest}
}

func TestARunIsGivenUpWhoseFilesDoNotCome(t *testing.T) {
	m, s := start(t)
	j, outcome, job := m.begin(t, s, jobFor(t))
	replies := make(chan fleet.DoneReply, 1)
	never := silentHub(t, m)
	background(t, func() { replies <- s.sendOutcome(job.Token, answerOf("done"), never) })
	for !m.Settles(job.Token) {
		runtime.Gosched()
	}
	if err := m.Abandon("t1", "ann"); err != nil {
		t.Fatal(err)
	}
	if got := await(t, "the outcome", outcome); got.Result.Error.Kind != envelope.RunLost {
		t.Errorf("the outcome is %+v; want a lost run", got.Result)
	}
	m.end(job.Token, fleet.PastClosed)
	m.Settled(j.At)
	if reply := await(t, "the answer", replies); reply.Settled {
		t.Errorf("the runner got %+v; want that it keeps the answer", reply)
	}
	if reply := s.done(job.Token, "done"); reply.Fenced == "" {
		t.Errorf("the runner got %+v; want that the answer came too late", reply)
	}
}
