package dispatch_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// CLOWL-29.
func TestWhoAnnouncesItselfHearsWhoIsHere(t *testing.T) {
	e := newEngine(t)
	e.supports = map[string][]string{"quick": {"search:web"}}
	e.most = 4
	e.judge = func(t envelope.Task, _ time.Time) task.Verdict {
		if t.Agent == "radar" {
			return task.Verdict{Findings: envelope.Findings{{Kind: envelope.UnknownAgent, Message: "is no agent here"}}}
		}
		return task.Verdict{Admit: true}
	}
	e.start()
	e.say(word{mid: "k1", p: "CAPS", from: "radar", to: "*", t: "capabilities", d: `{"supports":["scan"],"clowl":"0.2"}`}.line())
	var said []string
	e.until("radar hears of everybody", func() bool { return len(e.letters("radar")) == 3 })
	for _, l := range e.post("radar") {
		said = append(said, l.P+" "+l.From)
	}
	if want := []string{"CAPS mailboxd", "CAPS quick", "CAPS slow"}; !slices.Equal(said, want) {
		t.Errorf("radar hears %v; want %v", said, want)
	}
	if l := e.post("radar")[1]; !strings.Contains(l.line, "search:web") {
		t.Errorf("quick announces %s; want what it takes", l.line)
	}
	e.say(word{mid: "m1", p: "REQ", from: "ann", to: "*", t: "scan"}.line())
	if row := e.await("m1", task.Done); row.Kind != envelope.DependencyFailed {
		t.Errorf("m1 ends %s (%s); want that radar, who announced it takes that, is asked, and is no agent here", row.Status, row.Kind)
	}
}

// CLOWL-09.
func TestARequestForSeveralIsAskedOfEach(t *testing.T) {
	e := newEngine(t)
	e.supports, e.most = map[string][]string{"quick": {"work"}, "other": {"work"}, "ann": {"work"}}, 2
	e.plays["other"] = quick
	e.start()
	e.say(word{mid: "m1", p: "REQ", from: "ann", to: `["quick","other","quick"]`, d: `{"n":1}`}.line())
	if row := e.await("m1", task.Done); row.Status != envelope.OK || row.Agent != envelope.Mailboxd {
		t.Errorf("m1 = %+v; want it gathered by us", row)
	}
	children, err := e.parts.Ledger.Dependents(t.Context(), e.row("m1").Seq)
	e.must(err)
	var agents []string
	for _, c := range children {
		agents = append(agents, c.Agent)
		raw, err := e.parts.Ledger.Raw(t.Context(), c.Seq)
		e.must(err)
		if c.Tie != envelope.Member || !strings.Contains(string(raw), `"pid":"m1"`) || !strings.Contains(string(raw), `"cid":"c1"`) || !strings.Contains(string(raw), `"n":1`) {
			t.Errorf("%s is asked %s, tie %s; want what was asked, in its conversation", c.Agent, raw, c.Tie)
		}
	}
	if !slices.Equal(agents, []string{"quick", "other"}) {
		t.Errorf("asked %v; want each once", agents)
	}
	done := e.gets("ann", "DONE", "m1")
	for _, name := range agents {
		if !strings.Contains(done.line, name) {
			t.Errorf("ann is told %s; want the answer of %s in it", done.line, name)
		}
	}
	e.say(word{mid: "m2", p: "REQ", from: "ann", to: "*"}.line())
	if row := e.await("m2", task.Done); row.Status != envelope.OK {
		t.Errorf("m2 ends %s; want ok, by quick and other", row.Status)
	}
	e.say(word{mid: "m3", p: "REQ", from: "ann", to: "*", t: "unheard"}.line())
	e.wantError("ann", "m3", "E010", false)
	e.say(word{mid: "m4", p: "REQ", from: "ann", to: `["a","b","c"]`}.line())
	e.wantError("ann", "m4", "E008", true)
	for _, l := range e.post("ann") {
		if l.P != "ERR" && l.PID != "m1" && l.PID != "m2" {
			t.Errorf("ann is told %s; want nothing of the parts", l.line)
		}
	}
}

func TestACancelledRequestForSeveralIsCancelledForEach(t *testing.T) {
	e := newEngine(t)
	e.most = 2
	e.plays["other"] = slow
	e.start()
	e.say(word{mid: "m1", p: "REQ", from: "ann", to: `["slow","other"]`}.line())
	children, err := e.parts.Ledger.Dependents(t.Context(), e.row("m1").Seq)
	e.must(err)
	for _, c := range children {
		e.await(string(c.ID), task.Running)
	}
	e.say(cncl("c1", "ann", "m1"))
	for _, c := range children {
		if row := e.await(string(c.ID), task.Done); row.Status != envelope.Stopped {
			t.Errorf("%s ends %s; want cancelled", c.Agent, row.Status)
		}
	}
	e.gets("ann", "ACK", "c1")
}

// CLOWL-35: asking several is no way round.
func TestAMemberThatIsPartOfTheWorkAlreadyIsRefused(t *testing.T) {
	e, words := members(t, "chief", "clerk")
	e.most = 2
	e.start()
	e.say(req("m1", "chief"))
	e.awaitWork("m1")
	e.say(word{mid: "m2", p: "REQ", from: "chief", to: `["quick","chief"]`, pid: "m1"}.line())
	e.await("m2", task.Done)
	children, err := e.parts.Ledger.Dependents(t.Context(), e.row("m2").Seq)
	e.must(err)
	for _, c := range children {
		if want := map[string]envelope.Kind{"chief": envelope.DelegationCycle}[c.Agent]; c.Kind != want {
			t.Errorf("%s ends %s (%s); want %q", c.Agent, c.Status, c.Kind, want)
		}
	}
	e.wantResult("m2", `"status": "partial"`)
	close(words["chief"])
	close(words["clerk"])
	e.must(e.Idle(t.Context()))
}
