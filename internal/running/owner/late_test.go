package owner_test

import (
	"errors"
	"strings"
	"testing"

	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/owner"
)

// abandoned begins a run that is given up, and sends a file of it.
func abandoned(t *testing.T, m *mailboxOwner, s *stub) (fleet.Job, fleet.Object) {
	t.Helper()
	_, outcome, job := m.begin(t, s, jobFor(t))
	if err := m.Abandon("t1", "ann"); err != nil {
		t.Fatal(err)
	}
	await(t, "the outcome", outcome)
	m.end(job.Token, fleet.PastClosed)
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
