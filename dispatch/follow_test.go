package dispatch_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"mailboxd/dispatch"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/testtools/slowtest"
)

// wantNothingRemembered fails the test when a task that is over is still looked at.
func (e *engine) wantNothingRemembered() {
	e.t.Helper()
	e.must(e.Idle(e.t.Context()))
	if seqs := e.HeldSeqs(); len(seqs) > 0 {
		e.t.Errorf("tasks %v are remembered as held; want none", seqs)
	}
}

func TestATaskThatIsHeldAndReplacedAtOnceIsForgotten(t *testing.T) {
	for name, first := range map[string]play{
		"for a login": func(_ context.Context, j task.Job) task.Outcome { return shutOut(j) },
		"for a reply": func(_ context.Context, j task.Job) task.Outcome { return task.Outcome{Hold: task.Reply} },
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			goOn := make(chan struct{})
			e.plays["cli"] = func(ctx context.Context, j task.Job) task.Outcome {
				if j.Revision > 1 {
					return decision(j, "done")
				}
				<-goOn
				return first(ctx, j)
			}
			e.start()
			e.send("t1", "cli")
			e.await("t1", task.Running)
			e.send("t1", "cli", `"metadata":{"n":2}`)
			e.await("t1", task.Received)
			close(goOn)
			e.await("t1", task.Done)
			e.wantNothingRemembered()
		})
	}
}

func TestATaskIsForgottenThatIsAnsweredWhileItsLeaseIsRenewed(t *testing.T) {
	slowtest.SkipShort(t, "it waits for seconds")
	e := startEngine(t)
	for range 30 {
		e.send("t1", "editor", `"metadata":{"at":"`+time.Now().String()+`"}`)
		e.await("t1", task.Waiting)
		l, found, err := e.Claim(t.Context(), "editor", me, dispatch.Claimer{})
		if !found || err != nil {
			t.Fatalf("Claim() = %v, %v", found, err)
		}
		var renewing sync.WaitGroup
		for range 3 {
			renewing.Go(func() {
				for err := error(nil); err == nil; {
					_, err = e.Renew(t.Context(), l.Task.ID, "editor", l.Token)
				}
			})
		}
		e.must(e.Submit(t.Context(), l.Task.ID, dispatch.Submission{Agent: "editor", Token: l.Token, Answer: []byte("x")}, me))
		renewing.Wait()
	}
	e.wantNothingRemembered()
}
