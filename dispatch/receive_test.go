package dispatch_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// CLOWL-21, CLOWL-23.
func TestARequestInCLowlIsAnsweredInCLowl(t *testing.T) {
	e := startEngine(t)
	e.say(req("m1", "quick"))
	done := e.gets("ann", "DONE", "m1")
	if done.From != "quick" || done.CID != "c1" || done.TID != "t1" {
		t.Errorf("answer = %s; want it of quick, in c1 and t1", done.line)
	}
	post := e.post("ann")
	if post[0].P != "ACK" || post[0].PID != "m1" {
		t.Errorf("first letter = %s; want the ACK", post[0].line)
	}
	if row := e.row("m1"); row.Dialect != envelope.CLowl || row.Requester != "ann" || row.Type != "work" {
		t.Errorf("m1 = %+v; want a task of ann's in CLowl", row)
	}
	e.wantResult("m1", `"status": "ok"`)
}

// CAP-13, CAP-33.
func TestADelegationInCAPIsAnsweredInCAP(t *testing.T) {
	e := startEngine(t)
	e.say(capLine("delegation_notice", "T1", "user", "quick", "look at it"))
	if l := e.gets("user", "message", "T1"); l.Sender != "quick" || l.Text != "done, revision 1" {
		t.Errorf("answer = %s; want that of quick", l.line)
	}
	if row := e.row("T1"); row.Dialect != envelope.CAP {
		t.Errorf("T1 = %+v; want it in CAP", row)
	}
}

// CLOWL-37, rows 47 and 48.
func TestAnIDIsTakenOnceInAllDialects(t *testing.T) {
	e := startEngine(t)
	e.say(req("m1", "quick"), req("m1", "quick"))
	e.await("m1", task.Done)
	e.say(word{mid: "m1", p: "REQ", from: "ann", to: "quick", t: "other"}.line())
	e.wantError("ann", "m1", "E011", true)
	e.say(capLine("delegation_notice", "m1", "user", "quick", "look at it"))
	e.wantFailure("user", "m1", 409)
	e.send("m1", "quick")
	if row := e.row("m1"); row.Revision != 1 {
		t.Errorf("m1 has revision %d; want one alone", row.Revision)
	}
	e.wantEvent("m1", "task.duplicate")
	e.send("a1", "quick")
	e.await("a1", task.Done)
	e.say(req("a1", "quick"))
	e.wantError("ann", "a1", "E011", true)
}

// CLOWL-37.
func TestAMessageIsHeardOnce(t *testing.T) {
	e := startEngine(t)
	news := word{mid: "i1", p: "INF", from: "user", to: "bob", d: `{"n":1}`}
	e.say(news.line(), news.line())
	news.d = `{"n":2}`
	e.say(news.line())
	e.wantError("user", "i1", "E011", true)
	if post := e.post("bob"); len(post) != 1 {
		t.Errorf("inbox of bob = %+v; want the message once", post)
	}
}

// Row 50.
func TestWhatWeSayIsNothingThatWeHear(t *testing.T) {
	e := startEngine(t)
	e.say(req("m1", "quick"))
	e.gets("ann", "DONE", "m1")
	before := e.letters("ann")
	e.say(before...)
	if n := e.events("message.own"); n != len(before) {
		t.Errorf("%d of %d lines are known as our own", n, len(before))
	}
	e.must(e.Idle(t.Context()))
	if after := e.letters("ann"); len(after) != len(before) {
		t.Errorf("inbox of ann = %q; want no answer to a message of mailboxd", after)
	}
}

// CLOWL-18, row 49's reserved names.
func TestWhoDoesNotProveToBeItselfIsNotHeard(t *testing.T) {
	e := newEngine(t)
	e.secrets = map[string]string{"ann": "sesame"}
	e.start()
	e.say(req("m1", "quick"))
	e.wantError("ann", "m1", "E002", false)
	e.say(word{mid: "m2", p: "REQ", from: "ann", to: "quick", more: `,"auth":"wrong"`}.line())
	e.wantError("ann", "m2", "E002", false)
	e.say(word{mid: "m3", p: "REQ", from: "ann", to: "quick", more: `,"auth":"sesame"`}.line())
	e.gets("ann", "DONE", "m3")
	e.say(capLine("delegation_notice", "T1", "ann", "quick", "look at it"))
	e.wantFailure("ann", "T1", 401)
	refused := func(ids ...string) {
		t.Helper()
		for _, id := range ids {
			if row := e.row(id); row.Status != envelope.Rejected || row.Kind != envelope.Unauthorized || row.Parent != 0 {
				t.Errorf("%s is %+v; want it refused, as part of nothing", id, row)
			}
		}
	}
	refused("m1", "m2", "T1")
	kept, err := os.ReadFile(e.parts.State.LedgerPath())
	e.must(err)
	wal, _ := os.ReadFile(e.parts.State.LedgerPath() + "-wal")
	if strings.Contains(string(kept)+string(wal)+e.log.String(), "sesame") || strings.Contains(string(kept)+string(wal), "wrong") {
		t.Error("the ledger or the log has a secret")
	}
	for _, name := range []string{"router", "registry", "mcp"} {
		e.say(word{mid: name + "1", p: "REQ", from: name, to: "quick"}.line(), capLine("message", name+"2", name, "quick", "do this"))
		e.wantError(name, name+"1", "E002", false)
		e.wantFailure(name, name+"2", 401)
	}
	e.say(word{mid: "w1", p: "REQ", from: "mailboxd", to: "quick"}.line())
	refused("router1", "w1")
}

// Rows 47 and 48.
func TestWhatIsWrongWithAMessageIsToldToItsSender(t *testing.T) {
	e := startEngine(t)
	for mid, c := range map[string]struct {
		line, code string
		retry      bool
	}{
		"v1": {`{"clowl":"0.3","mid":"v1","ts":1,"p":"REQ","from":"ann","to":"quick","cid":"c1","body":{"t":"x","d":{}}}`, "E014", false},
		"v2": {`{"cl":"0.1","mid":"v2","p":"REQ","from":"ann","to":"quick","cid":"c1","body":{"t":"x","d":{}}}`, "E014", false},
		"n1": {`{"clowl":"0.2","mid":"n1","ts":1,"p":"REQ","from":"ann","to":[],"cid":"c1","body":{"t":"x","d":{}}}`, "E001", true},
		"n2": {`{"clowl":"0.2","mid":"n2","ts":1,"p":"NOPE","from":"ann","to":"quick","cid":"c1","body":{"t":"x","d":{}}}`, "E001", true},
		"n3": {`{"clowl":"0.2","mid":"n3","ts":1,"p":"REQ","from":"ann","to":"quick","body":{"t":"x","d":{}}}`, "E001", true},
		"b1": {word{mid: "b1", p: "REQ", from: "ann", to: `["*","quick"]`}.line(), "E008", true},
		"b2": {`{"clowl":"0.2","mid":"b2","ts":1709078400000,"p":"REQ","from":"ann","to":"quick","cid":"c1","body":{"t":"x","d":{}}}`, "E008", true},
		"b3": {word{mid: "b3", p: "DLGT", from: "ann", to: "quick"}.line(), "E008", true},
		"b4": {word{mid: "b4", p: "DLGT", from: "ann", to: "quick", d: `{"delegation_mode":"lend"}`}.line(), "E008", true},
		"s1": {word{mid: "s1", p: "DLGT", from: "ann", to: "ann", d: `{"delegation_mode":"fork"}`}.line(), "E015", false},
		"u1": {word{mid: "u1", p: "DLGT", from: "ann", to: "quick", d: `{"delegation_mode":"fork"}`}.line(), "E002", false},
	} {
		e.say(c.line)
		e.wantError("ann", mid, c.code, c.retry)
	}
	e.say(`{"type":"error_response","task_id":"T1","sender_id":"user","recipient_id":"quick","error_code":"504","error_message":"late"}`)
	e.wantFailure("user", "T1", 400)
	e.say(`{"type":"gossip","task_id":"T2","sender_id":"user","recipient_id":"quick","content":"news"}`)
	e.wantFailure("user", "T2", 400)
	e.must(e.Idle(t.Context()))
	letters, err := os.ReadDir(filepath.Join(e.parts.Box.Path(), "rejected"))
	if err != nil || len(letters) != 1 {
		t.Errorf("rejected/ has %v, %v; want the dead letters of today", letters, err)
	}
}

// CLOWL-18.
func TestASecretIsNotKeptOfWhatIsNoMessage(t *testing.T) {
	e := newEngine(t)
	e.secrets = map[string]string{"ann": "sesame"}
	e.start()
	with := func(mid, more string) string {
		return word{mid: mid, p: "REQ", from: "ann", to: "quick", more: `,"auth":"sesame"` + more}.line()
	}
	e.say(
		with("x1", `,"type":"message","sender_id":"ann"`),
		with("x2", `,"schema_version":"1.0","task_id":"x2"`),
		"["+with("x3", "")+"]", `{"message":`+with("x4", "")+`}`, "\ufeff"+with("x5", ""),
		`{"auth":"sesame","mid":"x6","p":"REQ","from":"ann"}`,
		`{"auth":"sesame","x":"`+strings.Repeat("x", 2<<20)+`","clowl":"0.2"}`,
	)
	e.must(e.Idle(t.Context()))
	e.must(filepath.WalkDir(filepath.Dir(e.parts.State.LedgerPath()), e.isWithout("sesame")))
	e.must(filepath.WalkDir(filepath.Join(e.parts.Box.Path(), "rejected"), e.isWithout("sesame")))
}

// isWithout fails the test for each file that has a word.
func (e *engine) isWithout(word string) fs.WalkDirFunc {
	return func(path string, f fs.DirEntry, err error) error {
		if err != nil || !f.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte(word)) {
			e.t.Errorf("%s has %q: %.200q", path, word, text)
		}
		return err
	}
}

// Row 46, CLOWL-36.
func TestARequesterHasOnlySoManyTasksAtOnce(t *testing.T) {
	e := newEngine(t)
	e.opts.QueuePerRequester, e.opts.Workers = 2, 8
	e.start()
	e.say(req("m1", "slow"), req("m2", "slow"), req("m3", "slow"))
	e.wantError("ann", "m3", "E004", true)
	e.say(capLine("delegation_notice", "T1", "user", "slow", "a"), capLine("delegation_notice", "T2", "user", "slow", "b"), capLine("delegation_notice", "T3", "user", "slow", "c"))
	e.wantFailure("user", "T3", 429)
	for _, id := range []string{"a1", "a2", "a3"} {
		e.send(id, "slow")
	}
	if row := e.await("a3", task.Done); row.Kind != envelope.Capacity || row.Status != envelope.Rejected {
		t.Errorf("a3 ends %s (%s); want rejected (capacity)", row.Status, row.Kind)
	}
	e.must(e.Cancel(t.Context(), "a1", me))
	e.send("a4", "quick")
	e.await("a4", task.Done)
	e.wantResult("a4", `"status": "ok"`)
}

// CLOWL-36: what policy says no to has the code of that.
func TestWhatPolicyRefusesIsToldInItsCode(t *testing.T) {
	e := newEngine(t)
	e.judge = func(t envelope.Task, _ time.Time) task.Verdict {
		return task.Verdict{Findings: envelope.Findings{{Kind: envelope.Kind(t.Type), Message: "no"}}}
	}
	e.start()
	for kind, c := range map[envelope.Kind]struct {
		code  string
		retry bool
	}{
		envelope.UnsupportedTask: {"E005", false}, envelope.DependencyFailed: {"E007", true}, envelope.UnknownAgent: {"E010", false},
		envelope.PolicyViolation: {"E016", false}, envelope.BudgetExceeded: {"E012", false},
	} {
		mid := "m-" + string(kind)
		e.say(word{mid: mid, p: "REQ", from: "ann", to: "quick", t: string(kind)}.line())
		e.wantError("ann", mid, c.code, c.retry)
	}
}

// Anyone who was told what is wrong with a line is not told again when that is read
// again, for the file was replaced by one that has it too.
func TestWhoWasToldIsNotToldAgainOfALineThatIsReadAgain(t *testing.T) {
	e := startEngine(t)
	path := filepath.Join(e.parts.Box.Path(), "tasks", "mine.jsonl")
	line := word{mid: "u1", p: "DLGT", from: "ann", to: "quick", d: `{"delegation_mode":"fork"}`}.line() + "\n"
	e.must(os.WriteFile(path, []byte(line), 0o600))
	e.Look(t.Context())
	e.wantError("ann", "u1", "E002", false)
	e.must(os.WriteFile(path+".new", []byte(line+req("m1", "quick")+"\n"), 0o600))
	e.must(os.Rename(path+".new", path))
	e.Look(t.Context())
	e.gets("ann", "DONE", "m1")
	if post := e.post("ann"); len(post) != 3 {
		t.Errorf("inbox of ann = %+v; want the error once, ACK and DONE", post)
	}
}

func TestARequestThatIsRefusedForItsSenderIsAnsweredOnce(t *testing.T) {
	e := newEngine(t)
	e.secrets = map[string]string{"ann": "sesame"}
	e.start()
	notice := capLine("delegation_notice", "T1", "quick", "slow", "look at it")
	request := word{mid: "m1", p: "REQ", from: "ann", to: "quick", more: `,"auth":"wrong"`}
	e.say(request.line(), notice)
	e.say(request.line(), notice)
	e.must(e.Idle(t.Context()))
	for _, name := range []string{"ann", "quick"} {
		if post := e.letters(name); len(post) != 1 {
			t.Errorf("inbox of %s = %q; want one answer to what was said again", name, post)
		}
	}
	request.more = `,"auth":"sesame"`
	e.say(request.line())
	e.gets("ann", "DONE", "m1")
}

func TestADelegationThatWasRefusedIsNotAcceptedLater(t *testing.T) {
	e := startEngine(t)
	notice := capLine("delegation_notice", "T1", "slow", "quick", "look at it")
	e.say(notice)
	e.wantFailure("slow", "T1", 401)
	e.say(capLine("delegation_notice", "T2", "user", "slow", "work"))
	e.await("T2", task.Running)
	e.say(notice)
	if row := e.row("T1"); row.Status != envelope.Rejected || row.Revision != 1 {
		t.Errorf("T1 is %+v; want it refused once", row)
	}
	if post := e.letters("slow"); len(post) != 1 {
		t.Errorf("inbox of slow = %q; want one answer", post)
	}
}

func TestARequestWhoseDataCannotBeReadHasAResult(t *testing.T) {
	e := newEngine(t)
	e.opts.Tail.MaxLine = 1000
	e.start()
	e.say(
		`{"clowl":"0.2","mid":"m1","ts":1,"p":"REQ","from":"ann","to":"quick","cid":"c1"}`,
		`{"clowl":"0.2","mid":"m2","ts":1,"p":"DLGT","from":"ann","to":"quick","cid":"c1","body":{"t":"x","d":[]}}`,
		word{mid: "m3", p: "REQ", from: "ann", to: "quick", d: `{"text":"` + strings.Repeat("x", 1000) + `"}`}.line(),
	)
	e.must(e.Idle(t.Context()))
	for _, mid := range []string{"m1", "m2", "m3"} {
		e.wantResult(mid, `"status": "rejected"`, `"kind": "invalid_envelope"`)
		e.wantError("ann", mid, "E001", true)
	}
}
