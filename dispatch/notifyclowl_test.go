package dispatch_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
	"mailboxd/internal/testtools/strict"
)

// A clowlLine is what of a line of CLowl the tests look at.
type clowlLine struct {
	MID  string `json:"mid"`
	TID  string `json:"tid"`
	PID  string `json:"pid"`
	P    string `json:"p"`
	From string `json:"from"`
	To   string `json:"to"`
	CID  string `json:"cid"`
	Body struct {
		T string         `json:"t"`
		D jsontext.Value `json:"d"`
	} `json:"body"`
}

// inboxLines reads an inbox in which every line has to pass the strict checker.
func (e *engine) inboxLines(name string) (lines []clowlLine) {
	e.t.Helper()
	for _, text := range e.letters(name) {
		if err := strict.CLowl([]byte(text)); err != nil {
			e.t.Errorf("inbox of %s has %s: %v", name, text, err)
		}
		var line clowlLine
		e.must(json.Unmarshal([]byte(text), &line))
		lines = append(lines, line)
	}
	return lines
}

func performatives(lines []clowlLine) (all []string) {
	for _, line := range lines {
		all = append(all, line.P)
	}
	return all
}

func TestARequestInCLowlIsAcknowledgedAndAnswered(t *testing.T) {
	e := startEngine(t)
	e.plays["quick"] = func(_ context.Context, j task.Job) task.Outcome {
		j.Report(envelope.Message{Act: envelope.Reports, Data: []byte(`{"pct":40}`), Text: "reading"})
		return decision(j, "done")
	}
	e.requested("m1", "quick", nil)
	e.again()
	lines := e.inboxLines("oscar")
	if got := performatives(lines); !slices.Equal(got, []string{"ACK", "PROG", "DONE"}) {
		t.Fatalf("oscar heard %v; want ACK, PROG and DONE, in this order (CLOWL-23)", got)
	}
	names := map[string]bool{}
	for _, line := range lines {
		if line.PID != "m1" || line.TID != "x1" || line.CID != "c1" || line.From != "quick" || line.To != "oscar" {
			t.Errorf("oscar heard %+v; want it from quick, a reply to m1 in c1 and x1", line)
		}
		names[line.MID] = true
	}
	if len(names) != 3 || names[""] {
		t.Errorf("the messages have the names %v; want three of their own", names)
	}
	if d := string(lines[1].Body.D); d != `{"note":"reading","pct":40}` {
		t.Errorf("PROG says %s; want what the agent reported", d)
	}
	if d := string(lines[2].Body.D); !strings.Contains(d, `"done, revision 1"`) || lines[2].Body.T != "search" {
		t.Errorf("DONE says %s about %s; want the answer about the search", d, lines[2].Body.T)
	}
}

func TestAFailureInCLowlSaysWhetherToTryAgain(t *testing.T) {
	for kind, want := range map[envelope.Kind]string{
		envelope.Timeout:        `"code":"E006",%"retry":true`,
		envelope.BudgetExceeded: `"code":"E012",%"retry":false`,
		envelope.AgentCrashed:   `"code":"E009",%"kind":"agent_crashed"`,
	} {
		e := startEngine(t)
		e.retries = 0
		e.plays["quick"] = func(_ context.Context, j task.Job) task.Outcome {
			o := decision(j, "nothing")
			o.Result.Status, o.Result.Error = envelope.Failed, envelope.Error{Kind: kind, Message: "it went wrong"}
			return o
		}
		e.requested("m1", "quick", nil)
		e.again()
		lines := e.inboxLines("oscar")
		if len(lines) != 2 || lines[1].P != "ERR" || lines[1].Body.T != "error" {
			t.Errorf("%s: oscar heard %+v; want ACK and ERR", kind, lines)
			continue
		}
		for part := range strings.SplitSeq(want, "%") {
			if !strings.Contains(string(lines[1].Body.D), part) {
				t.Errorf("%s: ERR says %s; want %s in it", kind, lines[1].Body.D, part)
			}
		}
	}
}

func TestWhoWaitsHearsWhyAndWhenItGoesOn(t *testing.T) {
	e := startEngine(t)
	e.requested("m1", "quick", func(row *task.Task, _ *task.Conversation) {
		row.State, row.Reasons = task.Held, []task.Reason{task.Operator}
	})
	e.again()
	lines := e.inboxLines("oscar")
	if got := performatives(lines); !slices.Equal(got, []string{"ACK", "PROG"}) || !strings.Contains(string(lines[1].Body.D), `"blocked":["operator"]`) {
		t.Fatalf("oscar heard %+v; want ACK, and PROG that it is blocked by an operator", lines)
	}
	e.must(e.Release(t.Context(), "m1", core.By{Who: "me"}))
	e.await("m1", task.Done)
	e.must(e.Idle(t.Context()))
	lines = e.inboxLines("oscar")
	if got := performatives(lines); !slices.Equal(got, []string{"ACK", "PROG", "PROG", "DONE"}) || !strings.Contains(string(lines[2].Body.D), `"blocked":[]`) {
		t.Errorf("oscar heard %+v; want PROG that it goes on, and DONE", lines)
	}
}

// Who cancelled by a message hears that it is stopped, as a reply to that
// message; a cancellation by somebody else is E013 (CLOWL-27).
func TestACancellationIsAnsweredToWhoAskedForIt(t *testing.T) {
	for _, c := range []struct{ from, want string }{{"oscar", "ACK"}, {"somebody", "ERR"}} {
		e := startEngine(t)
		e.requested("m1", "slow", func(row *task.Task, _ *task.Conversation) {
			row.State, row.Reasons = task.Held, []task.Reason{task.Operator}
		})
		e.again()
		e.must(e.parts.Ledger.Update(t.Context(), func(tx *ledger.Tx) error {
			_, err := tx.Record(task.Message{Time: time.Now(), Act: envelope.Cancels, Dialect: envelope.CLowl, ID: "cn1", Cause: "m1", Task: e.row("m1").Seq, From: c.from, Via: task.ByLine, Body: []byte(cncl("cn1", c.from, "m1"))})
			return err
		}))
		e.must(e.Cancel(t.Context(), "m1", core.By{Who: c.from}))
		e.must(e.Idle(t.Context()))
		lines := e.inboxLines("oscar")
		last := lines[len(lines)-1]
		switch {
		case last.P != c.want:
			t.Errorf("cancelled by %s: oscar heard %v; want %s at the end", c.from, performatives(lines), c.want)
		case c.want == "ACK" && (last.PID != "cn1" || string(last.Body.D) != `{"status":"cancelled"}`):
			t.Errorf("cancelled by oscar: ACK %+v; want a reply to cn1 that says so", last)
		case c.want == "ERR" && !strings.Contains(string(last.Body.D), `"code":"E013"`):
			t.Errorf("cancelled by somebody: ERR %s; want E013", last.Body.D)
		}
	}
}

// What members answer is gathered by us, so it lies in nobody's inbox, and is
// remembered all the same.
func TestAMembersAnswerIsRememberedAndNotPosted(t *testing.T) {
	e := startEngine(t)
	e.requested("m1", "quick", func(_ *task.Task, k *task.Conversation) { k.Tie = envelope.Member })
	e.again()
	if lines := e.letters("oscar"); len(lines) > 0 {
		t.Errorf("oscar heard %q; want nothing of a member", lines)
	}
	if said := e.said("m1"); len(said) != 1 || said[0].Act != envelope.Completes || said[0].Inbox != "" {
		t.Errorf("remembered %+v; want the answer alone, for no inbox", said)
	}
}

// A daemon that dies after the ledger and before the telling tells on its next
// start, in the order of what happened, and once.
func TestWhatWasNotToldInTimeIsToldAtTheNextStart(t *testing.T) {
	e := startEngine(t)
	e.end()
	e.start()
	e.requested("m1", "editor", func(row *task.Task, _ *task.Conversation) {
		row.State, row.Reasons = task.Held, []task.Reason{task.Operator}
	})
	for _, want := range [][]string{{"ACK", "PROG"}, {"ACK", "PROG"}} {
		e.again()
		if got := performatives(e.inboxLines("oscar")); !slices.Equal(got, want) {
			t.Errorf("oscar heard %v; want %v", got, want)
		}
	}
}
