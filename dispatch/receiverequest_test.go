package dispatch_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/task"
)

// CLOWL-30, CLOWL-35, CAP-19, CAP-21.
func TestAnAgentHandsOnOnlyWhatItHas(t *testing.T) {
	e, words := members(t, "chief", "clerk")
	e.denied = map[string]string{"chief>quick": "is not among its allowed_agents"}
	e.start()
	e.say(req("m1", "chief"), capLine("delegation_notice", "T1", "user", "clerk", "look at it"))
	e.awaitWork("m1")
	e.awaitWork("T1")
	dlgt := func(mid, from, to, pid, mode string) string {
		return word{mid: mid, p: "DLGT", from: from, to: to, pid: pid, d: fmt.Sprintf(`{"delegation_mode":%q}`, mode)}.line()
	}
	e.say(dlgt("d1", "chief", "slow", "m1", "fork"), dlgt("d2", "clerk", "slow", "m1", "fork"), dlgt("d3", "chief", "quick", "m1", "fork"))
	if row := e.row("d1"); row.Parent != e.row("m1").Seq || row.Requester != "chief" {
		t.Errorf("d1 = %+v; want it below m1", row)
	}
	e.wantError("clerk", "d2", "E002", false)
	if denied := e.wantError("chief", "d3", "E002", false); !strings.Contains(denied.line, "delegation_denied") {
		t.Errorf("chief is told %s; want delegation_denied", denied.line)
	}
	e.awaitWork("d1")
	e.say(dlgt("d4", "slow", "chief", "d1", "fork"))
	e.wantError("slow", "d4", "E015", false)
	e.say(capLine("delegation_notice", "T1.1", "clerk", "slow", "a part"), capLine("delegation_notice", "T2", "chief", "quick", "another"))
	if row := e.row("T1.1"); row.Parent != e.row("T1").Seq {
		t.Errorf("T1.1 = %+v; want it below T1", row)
	}
	e.wantFailure("chief", "T2", 403)
	e.ask("chief", "a1", "quick")
	if row := e.await("a1", task.Done); row.Kind != envelope.DelegationDenied {
		t.Errorf("a1 ends %s (%s); want delegation_denied, in whatever words it is asked", row.Status, row.Kind)
	}
	e.must(e.Cancel(t.Context(), "d1", me))
	e.must(e.Cancel(t.Context(), "T1.1", me))
	close(words["chief"])
	close(words["clerk"])
	e.must(e.Idle(t.Context()))
}

// A file that anybody may place takes no request away from the task of its
// agent, with its limits of depth, budget and sensitivity.
func TestAStrayResultFileMakesNoRootOfWhatAWaitingAgentAsksFor(t *testing.T) {
	e := newEngine(t)
	e.plays["chief"] = func(context.Context, task.Job) task.Outcome {
		return task.Outcome{Hold: task.Reply, Exit: task.Exit{Started: time.Now()}}
	}
	e.start()
	e.say(req("m1", "chief"))
	e.await("m1", task.Held)
	e.putResult("m1", "chief", "not the answer")
	e.until("the stray file is told of", func() bool {
		kinds, _ := e.history("m1")
		return slices.Contains(kinds, "result.conflict")
	})
	for range 3 {
		e.Look(t.Context())
	}
	e.wantEvent("m1", "result.conflict")
	e.wantResult("m1", "not the answer")
	e.say(word{mid: "d1", p: "REQ", from: "chief", to: "quick"}.line())
	if row := e.row("d1"); row.Parent != e.row("m1").Seq {
		t.Errorf("d1 has the parent %d; want %d, the task that chief has", row.Parent, e.row("m1").Seq)
	}
}

// CLOWL-31: an agent that fetches its tasks hands them on as one that is run.
func TestAnAgentHandsOnInALineWhatLiesInItsInbox(t *testing.T) {
	e := newEngine(t)
	e.dialects = map[string]envelope.Dialect{"editor": envelope.CLowl}
	e.answer = func(j task.Job, said []byte) task.Outcome {
		codec, _ := dialect.Of(envelope.CLowl)
		m, _ := codec.Receive(said, j.Task)
		return task.Outcome{Hold: task.Children, Messages: []envelope.Message{m}}
	}
	e.start()
	e.say(req("m1", "editor"))
	e.await("m1", task.Waiting)
	e.say(word{mid: "d1", p: "DLGT", from: "editor", to: "quick", pid: "m1", d: `{"delegation_mode":"transfer"}`}.line())
	if row := e.await("m1", task.Done); row.Status != envelope.OK {
		t.Errorf("m1 ends %s (%s); want ok, by quick", row.Status, row.Kind)
	}
	if row := e.row("d1"); row.Agent != "quick" || row.Parent != e.row("m1").Seq {
		t.Errorf("d1 = %+v; want it quick's, below m1", row)
	}
	e.gets("ann", "DONE", "m1")
}

// CLOWL-32: who has answered all the same does not wait for what it handed on.
func TestWhatARunHandedOnInALineGoesOnAfterItsAnswer(t *testing.T) {
	e, words := members(t, "chief", "clerk")
	e.start()
	e.say(req("m1", "chief"))
	e.awaitWork("m1")
	e.say(word{mid: "d1", p: "DLGT", from: "chief", to: "clerk", pid: "m1", d: `{"delegation_mode":"assist"}`}.line())
	e.awaitWork("d1")
	close(words["chief"])
	e.await("m1", task.Done)
	close(words["clerk"])
	if row := e.await("d1", task.Done); row.Status != envelope.OK {
		t.Errorf("d1 ends %s (%s); want ok", row.Status, row.Kind)
	}
}
