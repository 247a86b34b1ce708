package dispatch_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mailboxd/dispatch"
	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/ledger"
	"mailboxd/internal/runner"
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
	e.await("running", ledger.Running)
	e.say(req("queued", "slow"))
	e.say(req("held", "quick"))
	e.say(cncl("x1", "eve", "running"))
	e.wantError("eve", "x1", "E002", false)
	for _, id := range []string{"queued", "running"} {
		e.say(cncl("c-"+id, "ann", id))
		if ack := e.gets("ann", "ACK", "c-"+id); ack.Body.D.Status != "cancelled" {
			t.Errorf("ann is told %s; want that %s is cancelled", ack.line, id)
		}
		if row := e.await(id, ledger.Done); row.Status != envelope.Stopped {
			t.Errorf("%s ends %s; want cancelled", id, row.Status)
		}
	}
	e.await("held", ledger.Done)
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
	e.await("waiting", ledger.Waiting)
	for _, id := range []string{"held", "waiting"} {
		e.say(cncl("c-"+id, "ann", id))
		if row := e.await(id, ledger.Done); row.Status != envelope.Stopped {
			t.Errorf("%s ends %s; want cancelled", id, row.Status)
		}
		e.gets("ann", "ACK", "c-"+id)
	}
}

// CLOWL-27: E013 is for others.
func TestSomebodyElseThanWhoCancelledIsToldSo(t *testing.T) {
	e := startEngine(t)
	e.say(req("m1", "slow"))
	e.await("m1", ledger.Running)
	e.must(e.Cancel(t.Context(), "m1", me))
	e.wantError("ann", "m1", "E013", false)
}

// Row 47.
func TestAMessageMayCancelWhatHasNotComeYet(t *testing.T) {
	e := startEngine(t)
	e.say(cncl("c1", "ann", "m1"), cncl("c2", "eve", "m2"))
	e.wantError("ann", "c1", "E008", false)
	e.say(req("m1", "quick"), req("m2", "quick"))
	if row := e.await("m1", ledger.Done); row.Status != envelope.Stopped {
		t.Errorf("m1 ends %s; want cancelled", row.Status)
	}
	e.gets("ann", "ACK", "c1")
	e.gets("ann", "DONE", "m2") // eve did not ask for it
}

// A crash may come between what a message says and what it does.
func TestACancellationOutlivesTheDaemon(t *testing.T) {
	e := newEngine(t)
	e.opts.Detach = true
	e.plays["left"] = func(ctx context.Context, _ dispatch.Job) dispatch.Outcome {
		<-ctx.Done()
		return dispatch.Outcome{Detached: true}
	}
	e.start()
	e.say(req("m1", "left"))
	e.await("m1", ledger.Running)
	row := e.row("m1")
	e.must(e.parts.Ledger.Update(t.Context(), func(tx *ledger.Tx) error {
		_, err := tx.Record(ledger.Message{Time: time.Now(), Dialect: envelope.CLowl, Act: envelope.Cancels, ID: "c1", Cause: "m1", Task: row.Seq, From: "ann", Via: ledger.ByLine, Hash: "h"})
		return err
	}))
	e.recovers = func(ctx context.Context) dispatch.Outcome { <-ctx.Done(); return cut(ctx) }
	e.restart()
	if row := e.await("m1", ledger.Done); row.Status != envelope.Stopped {
		t.Errorf("m1 ends %s; want cancelled", row.Status)
	}
	e.gets("ann", "ACK", "c1")
}

// CLOWL-28.
func TestAQuestionIsAnsweredAndDoesNothingElse(t *testing.T) {
	e := startEngine(t)
	e.say(req("m1", "slow"))
	e.await("m1", ledger.Running)
	before := e.row("m1")
	e.say(word{mid: "q1", p: "QRY", from: "bob", to: "slow", pid: "m1"}.line())
	if inf := e.gets("bob", "INF", "q1"); inf.Body.D.State != "running" {
		t.Errorf("bob is told %s; want that it runs", inf.line)
	}
	if after := e.row("m1"); !slices.Equal(after.Reasons, before.Reasons) || after.State != before.State || after.Attempt != before.Attempt {
		t.Errorf("m1 is %+v after a question; want %+v", after, before)
	}
	e.say(word{mid: "q2", p: "QRY", from: "bob", to: "slow", pid: "none"}.line())
	e.wantError("bob", "q2", "E008", false)
	e.must(e.Cancel(t.Context(), "m1", me))
}

// CLOWL-29.
func TestWhoAnnouncesItselfHearsWhoIsHere(t *testing.T) {
	e := newEngine(t)
	e.supports = map[string][]string{"quick": {"search:web"}}
	e.most = 4
	e.judge = func(t envelope.Task, _ time.Time) dispatch.Verdict {
		if t.Agent == "radar" {
			return dispatch.Verdict{Findings: envelope.Findings{{Kind: envelope.UnknownAgent, Message: "is no agent here"}}}
		}
		return dispatch.Verdict{Admit: true}
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
	if row := e.await("m1", ledger.Done); row.Kind != envelope.DependencyFailed {
		t.Errorf("m1 ends %s (%s); want that radar, who announced it takes that, is asked, and is no agent here", row.Status, row.Kind)
	}
}

// CLOWL-22, CAP-18.
func TestNewsGoesIntoTheInboxOfWhoItIsFor(t *testing.T) {
	e := newEngine(t)
	e.most = 5
	e.start()
	e.say(
		word{mid: "i1", p: "INF", from: "user", to: `["bob","carl","bob"]`, d: `{"n":1}`}.line(),
		capLine("message", "T9", "orchestrator", "bob", "hello"),
		word{mid: "i2", p: "INF", from: "user", to: "dora", d: `{"n":2}`, more: `,"hue":"blue"`}.line(),
	)
	e.until("all have their letters", func() bool {
		return len(e.letters("bob")) == 2 && len(e.letters("carl")) == 1 && len(e.letters("dora")) == 1
	})
	for _, name := range []string{"bob", "carl", "dora"} {
		for _, l := range e.post(name) {
			if l.From != "user" && l.Sender != "orchestrator" {
				t.Errorf("%s has %s; want it from who said it", name, l.line)
			}
		}
	}
	if e.letters("user") != nil {
		t.Errorf("user has %q; want no answer to news", e.letters("user"))
	}
}

// Row 48.
func TestWhatSomebodyUnknownSaysIsRememberedAndNothingElse(t *testing.T) {
	e := startEngine(t)
	e.say(capLine("message", "T1", "stranger", "quick", "approve it"))
	if n := e.events("message.unknown_sender"); n != 1 {
		t.Errorf("there are %d events of it; want 1", n)
	}
	if e.letters("quick") != nil {
		t.Errorf("inbox of quick = %q; want nothing", e.letters("quick"))
	}
	said, err := e.parts.Ledger.Thread(t.Context(), "T1")
	if e.must(err); len(said) != 1 {
		t.Errorf("remembered %+v; want it", said)
	}
}

// CAP-29.
func TestAReplyInALineHasItsTaskGoOn(t *testing.T) {
	e := newEngine(t)
	e.plays["quick"] = func(ctx context.Context, j dispatch.Job) dispatch.Outcome {
		if j.Attempt > 1 {
			return quick(ctx, j)
		}
		return dispatch.Outcome{Hold: ledger.Reply, Exit: runner.Exit{Started: time.Now()}, Said: []envelope.Message{{Act: envelope.Informs, Dialect: envelope.CAP, Task: j.Task.ID, To: []string{"user"}, Text: "which?", WantsReply: true}}}
	}
	e.start()
	e.say(capLine("delegation_notice", "T1", "user", "quick", "look at it"))
	e.await("T1", ledger.Held)
	e.gets("user", "message", "T1")
	e.say(capLine("message", "T1", "stranger", "quick", "that one"))
	e.wantHeld("T1", ledger.Reply)
	e.say(capLine("message", "T1", "user", "quick", "this one"))
	if row := e.await("T1", ledger.Done); row.Attempt != 2 || row.Status != envelope.OK {
		t.Errorf("T1 = %+v; want it done by a second attempt", row)
	}
}

// Row 47.
func TestOnlyItsAgentEndsATaskAndOnlyFromItsInbox(t *testing.T) {
	e := newEngine(t)
	e.dialects = map[string]envelope.Dialect{"editor": envelope.CLowl}
	e.start()
	e.say(req("m1", "slow"), req("m2", "editor"))
	e.await("m1", ledger.Running)
	e.await("m2", ledger.Waiting)
	e.say(
		word{mid: "d1", p: "DONE", from: "eve", to: "ann", pid: "m2"}.line(),
		word{mid: "d2", p: "DONE", from: "slow", to: "ann", pid: "m1"}.line(),
		word{mid: "d3", p: "ACK", from: "eve", to: "ann", pid: "m2"}.line(),
		word{mid: "d4", p: "PROG", from: "editor", to: "ann", pid: "m2", d: `{"pct":40,"note":"half"}`}.line(),
	)
	e.wantError("eve", "d1", "E002", false)
	e.wantError("slow", "d2", "E002", false)
	e.gets("ann", "PROG", "m2")
	if row := e.row("m2"); row.State != ledger.Waiting {
		t.Errorf("m2 is %s; want that it waits still", row.State)
	}
	e.say(word{mid: "d5", p: "DONE", from: "editor", to: "ann", pid: "m2", d: `{"summary":"by hand"}`}.line())
	if row := e.await("m2", ledger.Done); row.Status != envelope.OK {
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
	e.await("T1", ledger.Waiting)
	e.await("T2", ledger.Waiting)
	e.say(capLine("message", "T1", "editor", "user", "it is fine"))
	e.await("T1", ledger.Done)
	e.gets("user", "message", "T1")
	e.say(`{"type":"error_response","task_id":"T2","sender_id":"editor","recipient_id":"user","error_code":504.0,"error_message":"MCP timeout"}`)
	e.await("T2", ledger.Done)
}

// CAP as it says that something is to be stopped (mapping 2.2).
func TestWhoDelegatedInCAPStopsWith499(t *testing.T) {
	e := startEngine(t)
	e.say(capLine("delegation_notice", "T1", "user", "slow", "look at it"))
	e.await("T1", ledger.Running)
	e.say(`{"type":"error_response","task_id":"T1","sender_id":"eve","recipient_id":"slow","error_code":499,"error_message":"stop"}`)
	e.wantFailure("eve", "T1", 401)
	e.say(`{"type":"error_response","task_id":"T1","sender_id":"user","recipient_id":"slow","error_code":499,"error_message":"stop"}`)
	if row := e.await("T1", ledger.Done); row.Status != envelope.Stopped {
		t.Errorf("T1 ends %s; want cancelled", row.Status)
	}
	e.wantFailure("user", "T1", 499)
}

// CLOWL-09.
func TestARequestForSeveralIsAskedOfEach(t *testing.T) {
	e := newEngine(t)
	e.supports, e.most = map[string][]string{"quick": {"work"}, "other": {"work"}, "ann": {"work"}}, 2
	e.plays["other"] = quick
	e.start()
	e.say(word{mid: "m1", p: "REQ", from: "ann", to: `["quick","other","quick"]`, d: `{"n":1}`}.line())
	if row := e.await("m1", ledger.Done); row.Status != envelope.OK || row.Agent != envelope.Ourselves {
		t.Errorf("m1 = %+v; want it gathered by us", row)
	}
	children, err := e.parts.Ledger.Offspring(t.Context(), e.row("m1").Seq)
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
	if row := e.await("m2", ledger.Done); row.Status != envelope.OK {
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
	children, err := e.parts.Ledger.Offspring(t.Context(), e.row("m1").Seq)
	e.must(err)
	for _, c := range children {
		e.await(string(c.ID), ledger.Running)
	}
	e.say(cncl("c1", "ann", "m1"))
	for _, c := range children {
		if row := e.await(string(c.ID), ledger.Done); row.Status != envelope.Stopped {
			t.Errorf("%s ends %s; want cancelled", c.Agent, row.Status)
		}
	}
	e.gets("ann", "ACK", "c1")
}

// CLOWL-14 to CLOWL-17.
func TestTheContextOfARequestIsWhatItsHashSays(t *testing.T) {
	e := startEngine(t)
	e.must(os.WriteFile(filepath.Join(e.parts.Box.Path(), "notes.md"), []byte("notes"), 0o600))
	sum := sha256.Sum256([]byte("notes"))
	right, wrong := hex.EncodeToString(sum[:]), strings.Repeat("0", 64)
	ctx := func(ref, inline, hash string) string {
		quoted := func(s string) string {
			if s == "" {
				return "null"
			}
			return fmt.Sprintf("%q", s)
		}
		return fmt.Sprintf(`,"ctx":{"ref":%s,"inline":%s,"hash":%s}`, quoted(ref), quoted(inline), quoted(hash))
	}
	for mid, c := range map[string]struct {
		ctx, code string
		kind      envelope.Kind
	}{
		"right":    {ctx("notes.md", "", right), "", ""},
		"unhashed": {ctx("notes.md", "", ""), "", ""},
		"wrong":    {ctx("notes.md", "", wrong), "E003", envelope.ContextIntegrity},
		"inlined":  {ctx("notes.md", "these", wrong), "E003", envelope.ContextIntegrity},
		"missing":  {ctx("none.md", "", ""), "E003", envelope.ContextUnavailable},
		"url":      {ctx("https://example.org/notes.md", "", ""), "E003", envelope.ContextUnavailable},
		"outside":  {ctx("/etc/passwd", "these", ""), "E016", envelope.SecurityViolation},
		"degraded": {ctx("none.md", "these", ""), "", ""},
		"long":     {ctx("", strings.Repeat("x", 2001), ""), "E008", envelope.ContextTooLarge},
	} {
		e.say(word{mid: mid, p: "REQ", from: "ann", to: "quick", more: c.ctx}.line())
		row := e.await(mid, ledger.Done)
		if row.Kind != c.kind {
			t.Errorf("%s ends %s (%s); want %q", mid, row.Status, row.Kind, c.kind)
		}
		if c.code != "" {
			e.wantError("ann", mid, c.code, c.code != "E016")
		}
	}
	e.wantEvent("degraded", "context.degraded")
	if kinds, _ := e.story("right"); slices.Contains(kinds, "context.degraded") {
		t.Errorf("story of right = %v; want nothing of a degraded context", kinds)
	}
}

// What lies there may be another by the time it is used.
func TestAContextIsLookedAtAgainBeforeItsTaskIsRun(t *testing.T) {
	e := startEngine(t)
	path := filepath.Join(e.parts.Box.Path(), "notes.md")
	e.must(os.WriteFile(path, []byte("notes"), 0o600))
	sum := sha256.Sum256([]byte("notes"))
	e.must(e.Pause(t.Context(), "quick", me))
	e.say(word{mid: "m1", p: "REQ", from: "ann", to: "quick", more: fmt.Sprintf(`,"ctx":{"ref":"notes.md","hash":%q}`, hex.EncodeToString(sum[:]))}.line())
	e.await("m1", ledger.Held)
	e.must(os.WriteFile(path, []byte("forged"), 0o600))
	e.must(e.Resume(t.Context(), "quick", me))
	if row := e.await("m1", ledger.Done); row.Kind != envelope.ContextIntegrity {
		t.Errorf("m1 ends %s (%s); want context_integrity", row.Status, row.Kind)
	}
}

// CLOWL-30, CLOWL-35, CAP-19, CAP-21.
func TestAnAgentHandsOnOnlyWhatItHas(t *testing.T) {
	e, words := family(t, "chief", "clerk")
	e.denied = map[string]string{"chief>quick": "is not among its allowed_agents"}
	e.start()
	e.say(req("m1", "chief"), capLine("delegation_notice", "T1", "user", "clerk", "look at it"))
	e.await("m1", ledger.Running)
	e.await("T1", ledger.Running)
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
	e.say(dlgt("d4", "slow", "chief", "d1", "fork"))
	e.wantError("slow", "d4", "E015", false)
	e.say(capLine("delegation_notice", "T1.1", "clerk", "slow", "a part"), capLine("delegation_notice", "T2", "chief", "quick", "another"))
	if row := e.row("T1.1"); row.Parent != e.row("T1").Seq {
		t.Errorf("T1.1 = %+v; want it below T1", row)
	}
	e.wantFailure("chief", "T2", 403)
	e.must(e.Cancel(t.Context(), "d1", me))
	e.must(e.Cancel(t.Context(), "T1.1", me))
	close(words["chief"])
	close(words["clerk"])
	e.must(e.Idle(t.Context()))
}

// CAP-24: anybody may append a line.
func TestALineDecidesNothingAboutAReview(t *testing.T) {
	e := startEngine(t)
	e.say(capLine("delegation_notice", "T1", "user", "slow", "look at it"))
	e.await("T1", ledger.Running)
	before := e.row("T1")
	e.say(capLine("oversight_inquiry", "T1", "user", "slow", "are you sure?"))
	e.gets("slow", "oversight_inquiry", "T1")
	if after := e.row("T1"); after.State != before.State || after.Attempt != before.Attempt {
		t.Errorf("T1 is %s, attempt %d; want it as it was", after.State, after.Attempt)
	}
	e.must(e.Cancel(t.Context(), "T1", me))
}

// CLOWL-31: an agent that fetches its tasks hands them on as one that is run.
func TestAnAgentHandsOnInALineWhatLiesInItsInbox(t *testing.T) {
	e := newEngine(t)
	e.dialects = map[string]envelope.Dialect{"editor": envelope.CLowl}
	e.answer = func(j dispatch.Job, said []byte) dispatch.Outcome {
		codec, _ := dialect.Of(envelope.CLowl)
		m, _ := codec.Hear(said, j.Task)
		return dispatch.Outcome{Hold: ledger.Children, Said: []envelope.Message{m}}
	}
	e.start()
	e.say(req("m1", "editor"))
	e.await("m1", ledger.Waiting)
	e.say(word{mid: "d1", p: "DLGT", from: "editor", to: "quick", pid: "m1", d: `{"delegation_mode":"transfer"}`}.line())
	if row := e.await("m1", ledger.Done); row.Status != envelope.OK {
		t.Errorf("m1 ends %s (%s); want ok, by quick", row.Status, row.Kind)
	}
	if row := e.row("d1"); row.Agent != "quick" || row.Parent != e.row("m1").Seq {
		t.Errorf("d1 = %+v; want it quick's, below m1", row)
	}
	e.gets("ann", "DONE", "m1")
}

// CLOWL-32: who has answered all the same does not wait for what it handed on.
func TestWhatARunHandedOnInALineGoesOnAfterItsAnswer(t *testing.T) {
	e, words := family(t, "chief", "clerk")
	e.start()
	e.say(req("m1", "chief"))
	e.await("m1", ledger.Running)
	e.say(word{mid: "d1", p: "DLGT", from: "chief", to: "clerk", pid: "m1", d: `{"delegation_mode":"assist"}`}.line())
	e.await("d1", ledger.Running)
	close(words["chief"])
	e.await("m1", ledger.Done)
	close(words["clerk"])
	if row := e.await("d1", ledger.Done); row.Status != envelope.OK {
		t.Errorf("d1 ends %s (%s); want ok", row.Status, row.Kind)
	}
}

func TestAReplyInCLowlNamesWhatItRepliesToOrItsConversation(t *testing.T) {
	for name, reply := range map[string]word{
		"by the request":      {mid: "r1", p: "INF", from: "ann", to: "quick", pid: "m1"},
		"by the question":     {mid: "r1", p: "INF", from: "ann", to: "quick", pid: "question"},
		"by the conversation": {mid: "r1", p: "INF", from: "ann", to: "quick"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			e.dialects = map[string]envelope.Dialect{"quick": envelope.CLowl}
			e.plays["quick"] = func(ctx context.Context, j dispatch.Job) dispatch.Outcome {
				if j.Attempt > 1 {
					return quick(ctx, j)
				}
				return dispatch.Outcome{Hold: ledger.Reply, Exit: runner.Exit{Started: time.Now()}, Said: []envelope.Message{
					{Act: envelope.Asks, Dialect: envelope.CLowl, ID: "question", To: []string{"ann"}, Type: "which", Text: "which?", WantsReply: true},
				}}
			}
			e.start()
			e.say(req("m1", "quick"))
			e.await("m1", ledger.Held)
			e.say(reply.line())
			if row := e.await("m1", ledger.Done); row.Attempt != 2 || row.Status != envelope.OK {
				t.Errorf("m1 = %+v; want it done by a second attempt", row)
			}
		})
	}
}

// CLOWL-35: asking several is no way round.
func TestAMemberThatIsPartOfTheWorkAlreadyIsRefused(t *testing.T) {
	e, words := family(t, "chief", "clerk")
	e.most = 2
	e.start()
	e.say(req("m1", "chief"))
	e.await("m1", ledger.Running)
	e.say(word{mid: "m2", p: "REQ", from: "chief", to: `["quick","chief"]`, pid: "m1"}.line())
	e.await("m2", ledger.Done)
	children, err := e.parts.Ledger.Offspring(t.Context(), e.row("m2").Seq)
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

// CLOWL-27, row 47.
func TestNobodyElsesMessageHidesThatOneCancelledWhatHasNotCome(t *testing.T) {
	e := startEngine(t)
	e.say(cncl("c1", "ann", "m1"), cncl("c2", "eve", "m1"))
	e.say(word{mid: "c3", p: "CNCL", from: "ann", to: "quick", d: `{"task_id":"m2"}`}.line())
	e.say(req("m1", "quick"), req("m2", "quick"))
	for mid, id := range map[string]string{"c1": "m1", "c3": "m2"} {
		if row := e.await(id, ledger.Done); row.Status != envelope.Stopped {
			t.Errorf("%s ends %s; want cancelled", id, row.Status)
		}
		e.gets("ann", "ACK", mid)
	}
}

// CLOWL-27: each CNCL has its answer, whoever of those who may said it.
func TestEachMessageThatCancelsIsAnswered(t *testing.T) {
	e := startEngine(t)
	e.send("a1", "slow")
	e.say(req("m1", "slow"))
	e.await("m1", ledger.Queued)
	e.await("a1", ledger.Running)
	e.say(cncl("c1", "ann", "m1") + "\n" + cncl("c2", "ann", "m1"))
	e.say(cncl("c3", e.row("a1").Requester, "a1"))
	e.gets("ann", "ACK", "c1")
	e.gets("ann", "ACK", "c2")
	e.gets(e.row("a1").Requester, "ACK", "c3")
	for _, id := range []string{"m1", "a1"} {
		if row := e.await(id, ledger.Done); row.Status != envelope.Stopped {
			t.Errorf("%s ends %s; want cancelled", id, row.Status)
		}
	}
}

// An agent may have said something to go on with when it is cancelled.
func TestWhatIsCancelledDoesNotGoOnAfterItsRun(t *testing.T) {
	e := newEngine(t)
	e.plays["asker"] = func(ctx context.Context, j dispatch.Job) dispatch.Outcome {
		<-ctx.Done()
		o := dispatch.Outcome{Hold: ledger.Reply}
		o.Said = []envelope.Message{{Dialect: envelope.CLowl, Act: envelope.Asks, To: []string{"ann"}, Type: "q", Text: "which?", WantsReply: true}}
		return o
	}
	e.start()
	e.say(req("m1", "asker"))
	e.await("m1", ledger.Running)
	e.say(cncl("c1", "ann", "m1"))
	if row := e.await("m1", ledger.Done); row.Status != envelope.Stopped {
		t.Errorf("m1 ends %s; want cancelled", row.Status)
	}
	e.gets("ann", "ACK", "c1")
}
