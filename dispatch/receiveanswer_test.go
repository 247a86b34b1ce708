package dispatch_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/testtools/fault"
	"mailboxd/internal/testtools/slowtest"
)

// Row 47.
func TestOnlyItsAgentEndsATaskAndOnlyFromItsInbox(t *testing.T) {
	e := newEngine(t)
	e.dialects = map[string]envelope.Dialect{"editor": envelope.CLowl}
	e.start()
	e.say(req("m1", "slow"), req("m2", "editor"))
	e.await("m1", task.Running)
	e.await("m2", task.Waiting)
	e.say(
		word{mid: "d1", p: "DONE", from: "eve", to: "ann", pid: "m2"}.line(),
		word{mid: "d2", p: "DONE", from: "slow", to: "ann", pid: "m1"}.line(),
		word{mid: "d3", p: "ACK", from: "eve", to: "ann", pid: "m2"}.line(),
		word{mid: "d4", p: "PROG", from: "editor", to: "ann", pid: "m2", d: `{"pct":40,"note":"half"}`}.line(),
	)
	e.wantError("eve", "d1", "E002", false)
	e.wantError("slow", "d2", "E002", false)
	e.gets("ann", "PROG", "m2")
	if row := e.row("m2"); row.State != task.Waiting {
		t.Errorf("m2 is %s; want that it waits still", row.State)
	}
	e.say(word{mid: "d5", p: "DONE", from: "editor", to: "ann", pid: "m2", d: `{"summary":"by hand"}`}.line())
	if row := e.await("m2", task.Done); row.Status != envelope.OK {
		t.Errorf("m2 ends %s; want ok", row.Status)
	}
	e.gets("ann", "DONE", "m2")
	e.say(word{mid: "d6", p: "DONE", from: "editor", to: "ann", pid: "m2", d: `{"summary":"again"}`}.line(), word{mid: "d7", p: "ACK", from: "editor", to: "ann", pid: "m2"}.line())
	e.must(e.Cancel(t.Context(), "m1", me))
	e.must(e.Idle(t.Context()))
	for _, l := range e.post("ann") {
		if strings.Contains(l.line, "again") {
			t.Errorf("ann is told %s; want nothing after the end", l.line)
		}
	}
}

// CAP-24, CAP-33.
func TestAnAgentAnswersInCAPWhatLiesInItsInbox(t *testing.T) {
	e := newEngine(t)
	e.dialects = map[string]envelope.Dialect{"editor": envelope.CAP}
	e.start()
	e.say(capLine("delegation_notice", "T1", "user", "editor", "look at it"), capLine("delegation_notice", "T2", "user", "editor", "look at it"))
	e.await("T1", task.Waiting)
	e.await("T2", task.Waiting)
	e.say(capLine("message", "T1", "editor", "user", "it is fine"))
	e.await("T1", task.Done)
	e.gets("user", "message", "T1")
	e.say(`{"type":"error_response","task_id":"T2","sender_id":"editor","recipient_id":"user","error_code":504.0,"error_message":"MCP timeout"}`)
	e.await("T2", task.Done)
}

// CAP-24: anybody may append a line.
func TestALineDecidesNothingAboutAReview(t *testing.T) {
	e := startEngine(t)
	e.say(capLine("delegation_notice", "T1", "user", "slow", "look at it"))
	e.await("T1", task.Running)
	before := e.row("T1")
	e.say(capLine("oversight_inquiry", "T1", "user", "slow", "are you sure?"))
	e.gets("slow", "oversight_inquiry", "T1")
	if after := e.row("T1"); after.State != before.State || after.Attempt != before.Attempt {
		t.Errorf("T1 is %s, attempt %d; want it as it was", after.State, after.Attempt)
	}
	e.must(e.Cancel(t.Context(), "T1", me))
}

// CAP-24: an approval in a line has no effect.
func TestNobodyApprovesInALine(t *testing.T) {
	s := newReview(t)
	s.overseers["analyst"] = "editor"
	s.start()
	s.order("T1", "analyst")
	s.await("T1.review", task.Waiting)
	s.say(
		message("editor", "T1.review", "analyst", "verified"),
		message("editor", "T1.review", "orchestrator", "verified"),
		message("analyst", "T1", "orchestrator", "verified"),
		inquiry("editor", "T1.review", "analyst", "really?"),
		refusal("editor", "T1.review", "analyst", "no"),
	)
	for _, id := range []string{"T1", "T1.review"} {
		if row, want := s.row(id), map[string]task.State{"T1": task.Review, "T1.review": task.Waiting}[id]; row.State != want {
			t.Errorf("%s is %s after lines of others; want %s", id, row.State, want)
		}
	}
	if n := len(s.runs("analyst")); n != 1 {
		t.Errorf("analyst ran %d times; want once, for a line sends nothing back", n)
	}
	s.hidden("T1")
	s.wantFailure("editor", "T1.review", 401)
}

func TestAnAnswerInALineIsTakenOnceTheLedgerCanBeRead(t *testing.T) {
	slowtest.Serial(t)
	e := newEngine(t)
	e.dialects = map[string]envelope.Dialect{"editor": envelope.CLowl}
	e.start()
	e.say(req("m1", "editor"))
	e.await("m1", task.Waiting)
	var failed atomic.Bool
	t.Cleanup(fault.FailReads(func(read string) error {
		if read == "answered task" && !failed.Swap(true) {
			return unix.EIO
		}
		return nil
	}))
	e.say(word{mid: "d1", p: "DONE", from: "editor", to: "ann", pid: "m1", d: `{"summary":"by hand"}`}.line())
	if row := e.await("m1", task.Done); row.Status != envelope.OK || !failed.Load() {
		t.Errorf("m1 ends %s, after a failed read: %v; want ok, true", row.Status, failed.Load())
	}
	e.wantResult("m1", "by hand")
}
