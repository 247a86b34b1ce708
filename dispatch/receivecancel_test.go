package dispatch_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

func cncl(mid, from, pid string) string {
	return word{mid: mid, p: "CNCL", from: from, to: "slow", pid: pid}.line()
}

// CLOWL-27.
func TestWhoAskedForATaskMayCancelIt(t *testing.T) {
	e := newEngine(t)
	e.opts.Workers = 1
	e.start()
	e.say(req("running", "slow"))
	e.await("running", task.Running)
	e.say(req("queued", "slow"))
	e.say(req("held", "quick"))
	e.say(cncl("x1", "eve", "running"))
	e.wantError("eve", "x1", "E002", false)
	for _, id := range []string{"queued", "running"} {
		e.say(cncl("c-"+id, "ann", id))
		if ack := e.gets("ann", "ACK", "c-"+id); ack.Body.D.Status != "cancelled" {
			t.Errorf("ann is told %s; want that %s is cancelled", ack.line, id)
		}
		if row := e.await(id, task.Done); row.Status != envelope.Stopped {
			t.Errorf("%s ends %s; want cancelled", id, row.Status)
		}
	}
	e.await("held", task.Done)
	e.say(cncl("c-over", "ann", "held"))
	e.wantError("ann", "c-over", "E011", true)
	for _, l := range e.post("ann") {
		if l.Body.D.Code == "E013" {
			t.Errorf("ann is told %s; want no E013, for she cancelled it herself", l.line)
		}
	}
}

func TestWhatWaitsOrIsHeldIsCancelledByAMessage(t *testing.T) {
	e := startEngine(t)
	e.must(e.Pause(t.Context(), "quick", me))
	e.say(req("held", "quick"), req("waiting", "editor"))
	e.await("waiting", task.Waiting)
	for _, id := range []string{"held", "waiting"} {
		e.say(cncl("c-"+id, "ann", id))
		if row := e.await(id, task.Done); row.Status != envelope.Stopped {
			t.Errorf("%s ends %s; want cancelled", id, row.Status)
		}
		e.gets("ann", "ACK", "c-"+id)
	}
}

// CLOWL-27: E013 is for others.
func TestSomebodyElseThanWhoCancelledIsToldSo(t *testing.T) {
	e := startEngine(t)
	e.say(req("m1", "slow"))
	e.await("m1", task.Running)
	e.must(e.Cancel(t.Context(), "m1", me))
	e.wantError("ann", "m1", "E013", false)
}

// Row 47.
func TestAMessageMayCancelWhatHasNotComeYet(t *testing.T) {
	e := startEngine(t)
	e.say(cncl("c1", "ann", "m1"), cncl("c2", "eve", "m2"))
	e.wantError("ann", "c1", "E008", false)
	e.say(req("m1", "quick"), req("m2", "quick"))
	if row := e.await("m1", task.Done); row.Status != envelope.Stopped {
		t.Errorf("m1 ends %s; want cancelled", row.Status)
	}
	e.wantError("ann", "m1", "E013", false) // c1 has its answer
	e.gets("ann", "DONE", "m2")             // eve did not ask for it
}

// A crash may come between what a message says and what it does.
func TestACancellationOutlivesTheDaemon(t *testing.T) {
	e := newEngine(t)
	e.opts.Detach = true
	e.plays["left"] = func(ctx context.Context, _ task.Job) task.Outcome {
		<-ctx.Done()
		return task.Outcome{Detached: true}
	}
	e.start()
	e.say(req("m1", "left"))
	e.await("m1", task.Running)
	row := e.row("m1")
	e.must(e.parts.Ledger.Update(t.Context(), func(tx *ledger.Tx) error {
		_, err := tx.Record(task.Message{Time: time.Now(), Dialect: envelope.CLowl, Act: envelope.Cancels, ID: "c1", Cause: "m1", Task: row.Seq, From: "ann", Via: task.ByLine, Hash: "h", Body: []byte(cncl("c1", "ann", "m1"))})
		return err
	}))
	e.recovers = func(ctx context.Context) task.Outcome { <-ctx.Done(); return cut(ctx) }
	e.restart()
	if row := e.await("m1", task.Done); row.Status != envelope.Stopped {
		t.Errorf("m1 ends %s; want cancelled", row.Status)
	}
	e.gets("ann", "ACK", "c1")
}

// CAP as it says that something is to be stopped (mapping 2.2).
func TestWhoDelegatedInCAPStopsWith499(t *testing.T) {
	e := startEngine(t)
	e.say(capLine("delegation_notice", "T1", "user", "slow", "look at it"))
	e.await("T1", task.Running)
	e.say(`{"type":"error_response","task_id":"T1","sender_id":"eve","recipient_id":"slow","error_code":499,"error_message":"stop"}`)
	e.wantFailure("eve", "T1", 401)
	e.say(`{"type":"error_response","task_id":"T1","sender_id":"user","recipient_id":"slow","error_code":499,"error_message":"stop"}`)
	if row := e.await("T1", task.Done); row.Status != envelope.Stopped {
		t.Errorf("T1 ends %s; want cancelled", row.Status)
	}
	e.wantFailure("user", "T1", 499)
}

// A cancellation may come while the machine still tries to start the agent.
func TestACancelledRunThatNeverBeganIsNotBegunLater(t *testing.T) {
	e := newEngine(t)
	e.plays["stuck"] = func(ctx context.Context, _ task.Job) task.Outcome {
		<-ctx.Done()
		return task.Outcome{Void: errors.New("nobody starts it")}
	}
	e.start()
	e.say(req("m1", "stuck"))
	e.await("m1", task.Running)
	e.say(cncl("c1", "ann", "m1"))
	if row := e.await("m1", task.Done); row.Status != envelope.Stopped || row.Attempt != 1 {
		t.Errorf("m1 = %+v; want it cancelled in its first attempt", row)
	}
	e.gets("ann", "ACK", "c1")
	e.wantResult("m1", "no agent ran")
}

// A task may be named by its id, whatever it was asked for in.
func TestATaskOfAINLIsCancelledByItsName(t *testing.T) {
	e := startEngine(t)
	e.ask("ann", "t1", "slow")
	e.await("t1", task.Running)
	e.say(word{mid: "c1", p: "CNCL", from: "ann", to: "slow", d: `{"task_id":"t1"}`}.line())
	if row := e.await("t1", task.Done); row.Status != envelope.Stopped {
		t.Errorf("t1 ends %s; want cancelled", row.Status)
	}
	e.gets("ann", "ACK", "c1")
}

// CLOWL-27, row 47.
func TestNobodyElsesMessageHidesThatOneCancelledWhatHasNotCome(t *testing.T) {
	e := startEngine(t)
	e.say(cncl("c1", "ann", "m1"), cncl("c2", "eve", "m1"))
	e.say(word{mid: "c3", p: "CNCL", from: "ann", to: "quick", d: `{"task_id":"m2"}`}.line())
	e.say(req("m1", "quick"), req("m2", "quick"))
	for mid, id := range map[string]string{"c1": "m1", "c3": "m2"} {
		if row := e.await(id, task.Done); row.Status != envelope.Stopped {
			t.Errorf("%s ends %s; want cancelled", id, row.Status)
		}
		e.wantError("ann", mid, "E008", false)
		e.wantError("ann", id, "E013", false)
	}
}

// CLOWL-27: each CNCL has its answer, from each sender who may send it.
func TestEachMessageThatCancelsIsAnswered(t *testing.T) {
	e := newEngine(t)
	e.opts.Workers = 1 // which a1 has
	e.start()
	e.send("a1", "slow")
	e.say(req("m1", "slow"))
	e.await("m1", task.Queued)
	e.await("a1", task.Running)
	e.say(cncl("c1", "ann", "m1") + "\n" + cncl("c2", "ann", "m1"))
	e.say(cncl("c3", e.row("a1").Requester, "a1"))
	e.gets("ann", "ACK", "c1")
	e.gets("ann", "ACK", "c2")
	e.gets(e.row("a1").Requester, "ACK", "c3")
	for _, id := range []string{"m1", "a1"} {
		if row := e.await(id, task.Done); row.Status != envelope.Stopped {
			t.Errorf("%s ends %s; want cancelled", id, row.Status)
		}
	}
}

// An agent may have said something to go on with when it is cancelled.
func TestWhatIsCancelledDoesNotGoOnAfterItsRun(t *testing.T) {
	e := newEngine(t)
	e.plays["asker"] = func(ctx context.Context, j task.Job) task.Outcome {
		<-ctx.Done()
		o := task.Outcome{Hold: task.Reply}
		o.Messages = []envelope.Message{{Dialect: envelope.CLowl, Act: envelope.Asks, To: []string{"ann"}, Type: "q", Text: "which?", WantsReply: true}}
		return o
	}
	e.start()
	e.say(req("m1", "asker"))
	e.await("m1", task.Running)
	e.say(cncl("c1", "ann", "m1"))
	if row := e.await("m1", task.Done); row.Status != envelope.Stopped {
		t.Errorf("m1 ends %s; want cancelled", row.Status)
	}
	e.gets("ann", "ACK", "c1")
}
