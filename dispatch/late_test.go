package dispatch_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// Who has read a task may be kept for a while, and come when it is another one.

// A meanwhile is a context with which something happens before what comes of what
// was read is written.
type meanwhile struct {
	context.Context
	do func()
}

// during is a meanwhile in which something happens once.
func during(do func()) context.Context { return meanwhile{context.Background(), sync.OnceFunc(do)} }

// Err implements context.Context. The ledger asks before each update.
func (m meanwhile) Err() error {
	m.do()
	return nil
}

// runs returns the runs of the latest revision of a task.
func (e *engine) runs(id string) []task.Run {
	e.t.Helper()
	runs, err := e.parts.Ledger.Runs(context.Background(), e.row(id).Seq)
	e.must(err)
	return runs
}

func TestARevisionIsLetInOnceAlsoWhenTwoEndsSeeToIt(t *testing.T) {
	e := newEngine(t)
	ends := []chan struct{}{nil, make(chan struct{}), make(chan struct{})}
	e.plays["gated"] = func(ctx context.Context, j task.Job) task.Outcome {
		<-ends[j.Revision]
		return decision(j, "done")
	}
	e.start()
	e.send("x", "gated")
	e.await("x", task.Running)
	e.send("x", "gated", `"priority":"high"`)
	next := e.await("x", task.Received)
	close(ends[1])
	e.await("x", task.Running)
	e.must(e.LetIn(t.Context(), next.Seq)) // the other end, which saw it wait
	if row := e.row("x"); row.State != task.Running || row.Attempt != 1 {
		t.Errorf("x is %s, attempt %d, after the second end; want running, 1", row.State, row.Attempt)
	}
	close(ends[2])
	e.await("x", task.Done)
	if runs := e.runs("x"); len(runs) != 1 {
		t.Errorf("revision 2 has %d runs; want 1", len(runs))
	}
}

func TestNoVerdictMovesWhatHasStarted(t *testing.T) {
	e := newEngine(t)
	e.judge = func(t envelope.Task, now time.Time) task.Verdict {
		if t.Agent == "read" {
			return asking("plan", envelope.ApprovalPost)(t, now)
		}
		return task.Verdict{Admit: true}
	}
	e.plays["read"] = quick
	e.start()
	e.send("runs", "slow")
	e.send("waits", "editor")
	e.send("read", "read")
	e.send("over", "quick")
	verdicts := map[string]task.Verdict{
		"to start": {Admit: true},
		"to wait":  {Admit: true, Hold: []task.Reason{task.Paused}},
		"to end":   {Findings: envelope.Findings{{Kind: envelope.PolicyViolation, Message: "not any more"}}},
	}
	for id, state := range map[string]task.State{
		"runs": task.Running, "waits": task.Waiting, "read": task.Review, "over": task.Done,
	} {
		was := e.await(id, state)
		for name, v := range verdicts {
			e.must(e.Apply(t.Context(), was, envelope.Task{ID: was.ID, Agent: was.Agent}, v))
			if row := e.row(id); row.State != state || row.Attempt != was.Attempt {
				t.Errorf("a verdict %s has moved %s from %s to %s", name, id, state, row.State)
			}
		}
	}
}

func TestARevisionTakesThePlaceOfATaskThatWasWokenInTheSameBatch(t *testing.T) {
	s := newStage(t)
	s.cast("pm", says(task.Reply, question("pm", "x", "user", "which region?")), answers("done so"))
	s.start()
	s.send("x", "pm")
	s.await("x", task.Held)
	s.say(message("user", "x", "pm", "the north"), request("x", "pm", `"priority":"high"`))
	s.must(s.Idle(t.Context()))
	s.wantResult("x", "revision 2")
	if jobs := s.runs("pm"); len(jobs) != 2 || jobs[1].Revision != 2 {
		t.Errorf("pm ran %d times, at last revision %d; want one run of each", len(jobs), jobs[len(jobs)-1].Revision)
	}
}

func TestWhatIsBelowATaskEndsWhenARevisionTakesItsPlace(t *testing.T) {
	pm := says(task.Children, notice("pm", "x.1", "slow", "take your time"))
	replace := func(s *stage) { s.send("x", "pm", `"priority":"high"`) }
	for name, test := range map[string]struct {
		began func(s *stage) // while the first revision runs
		waits func(s *stage) // for what is below it
	}{
		"that waits": {waits: replace},
		"that runs":  {began: replace},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.cast("pm", func(j task.Job) task.Outcome {
				if test.began != nil {
					test.began(s)
				}
				return pm(j)
			}, answers("alone"))
			s.start()
			s.send("x", "pm")
			if test.waits != nil {
				s.await("x.1", task.Running)
				test.waits(s)
			}
			s.await("x", task.Done)
			s.await("x.1", task.Done)
			s.wantEnd("x.1", envelope.Stopped, envelope.Cancelled)
		})
	}
}

func TestTheResultOfARevisionThatIsOverAtOnceStays(t *testing.T) {
	e := newEngine(t)
	e.log.seen = func(line string) {
		if strings.Contains(line, "task accepted") && strings.Contains(line, `"revision":2`) {
			e.must(e.Cancel(t.Context(), "x", me))
		}
	}
	e.start()
	e.send("x", "quick")
	e.await("x", task.Done)
	e.send("x", "quick", `"priority":"high"`)
	e.must(e.Idle(t.Context()))
	e.wantResult("x", "cancelled")
}

func TestAReplyThatComesWhileATaskIsReleasedIsNotMissed(t *testing.T) {
	s := newStage(t)
	s.cast("pm", says(task.Reply, question("pm", "T1", "user", "which region?")), answers("done so"))
	s.start()
	s.order("T1", "pm")
	s.must(s.Hold(t.Context(), "T1", me))
	s.must(s.Release(during(func() { s.say(message("user", "T1", "pm", "the north")) }), "T1", me))
	s.must(s.Idle(t.Context()))
	s.wantEnd("T1", envelope.OK, "")
}

// An answer may have to be approved by an overseer, and then by a person.
func TestWhatAnOverseerApprovedWaitsForAPersonWhoeverLooksLate(t *testing.T) {
	for name, late := range map[string]func(s *stage, was task.Task, approve func()){
		"before that": func(s *stage, was task.Task, approve func()) {
			approve()
			s.must(s.ReconsiderReview(s.t.Context(), was))
		},
		"while it did": func(s *stage, was task.Task, approve func()) {
			s.must(s.ReconsiderReview(during(approve), was))
		},
	} {
		t.Run("had read it "+name, func(t *testing.T) {
			s := newReview(t)
			s.judge = asking("plan", envelope.ApprovalPost)
			gate := make(chan struct{})
			s.plays["qa"] = func(_ context.Context, j task.Job) task.Outcome {
				<-gate
				return says(task.Reply, message("qa", "T1.review", "orchestrator", "verified"))(j)
			}
			s.start()
			s.say(notice("orchestrator", "T1", "analyst", "look"))
			was := s.await("T1", task.Review)
			was.Until = time.Now() // the overseer's time was over
			late(s, was, func() {
				close(gate)
				s.until("a person is asked", func() bool { return len(s.asked("T1")) > 0 })
			})
			if row := s.row("T1"); row.State != task.Review || s.asked("T1")[0].Decision != task.Undecided {
				t.Fatalf("T1 is %s, %s (%s); want it in review still", row.State, row.Status, row.Kind)
			}
			s.must(s.Approve(t.Context(), "T1", ada, ""))
			s.wantEnd("T1", envelope.OK, "")
		})
	}
}

func TestAPauseThatEndsBeforeItsBeginningIsHandledIsNotWaitedFor(t *testing.T) {
	e := startEngine(t)
	e.send("x", "quick")
	done := e.await("x", task.Done)
	e.must(e.Idle(t.Context()))
	pausing := done
	pausing.State, pausing.Reasons, pausing.Until = task.Held, []task.Reason{task.Capacity}, time.Now().Add(time.Hour)
	e.Follow(t.Context(), store.Move{Before: done, After: pausing})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := e.Idle(ctx); err == nil {
		t.Error("the engine is idle while x pauses between two attempts")
	}
	e.Follow(t.Context(), store.Move{Before: pausing, After: done}) // x was cancelled
	e.Follow(t.Context(), store.Move{Before: pausing, After: done}, store.Move{Before: done, After: pausing})
	e.must(e.Idle(t.Context()))
}

func TestATaskWhoseRunWasOverIsStoppedWithoutIt(t *testing.T) {
	e := startEngine(t)
	e.send("x", "quick")
	e.must(e.Idle(t.Context()))
	was := e.row("x")
	was.State = task.Running
	if stopped, err := e.StopRun(t.Context(), was, me); stopped || err != nil {
		t.Errorf("StopRun(one that has ended) = %v, %v; want it not stopped", stopped, err)
	}
}

func TestARevisionTakesThePlaceOfATaskThatGoesBackIntoTheQueue(t *testing.T) {
	t.Run("as it goes on at once", func(t *testing.T) {
		s := newStage(t)
		s.cast("pm", func(j task.Job) task.Outcome {
			s.say(message("user", "x", "pm", "the north"), request("x", "pm", `"priority":"high"`))
			return says(task.Reply, question("pm", "x", "user", "which region?"))(j)
		}, answers("done so"))
		s.start()
		s.send("x", "pm")
		s.must(s.Idle(t.Context()))
		s.wantResult("x", "revision 2")
		if n := len(s.runs("pm")); n != 2 {
			t.Errorf("pm ran %d times; want once for each revision", n)
		}
	})
	t.Run("as its overseer sends it back", func(t *testing.T) {
		s := newReview(t)
		s.cast("analyst", answers("42"), func(j task.Job) task.Outcome {
			if j.Revision == 1 {
				return fails(envelope.AgentError)(j)
			}
			return decision(j, "43")
		})
		s.plays["qa"] = func(_ context.Context, j task.Job) task.Outcome {
			if s.row("x").Revision == 2 {
				return says(task.Reply, message("qa", string(j.Task.ID), "tester", "verified"))(j)
			}
			s.send("x", "analyst", `"priority":"high"`)
			return says(task.Reply, inquiry("qa", "x.review", "analyst", "really?"))(j)
		}
		s.start()
		s.send("x", "analyst")
		s.must(s.Idle(t.Context()))
		s.wantResult("x", "43, revision 2")
		s.wantEnd("x.review", envelope.Stopped, envelope.Cancelled)
		if n := len(s.runs("analyst")); n != 2 {
			t.Errorf("analyst ran %d times; want once for each revision", n)
		}
	})
}
