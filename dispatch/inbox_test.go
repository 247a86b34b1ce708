package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mailboxd/dispatch"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

// answered takes words for an answer that cost five tokens; "?" is none.
func (e *engine) answered(j task.Job, said []byte, exit task.Exit) (task.Outcome, error) {
	if e.answer != nil {
		return e.answer(j, said), nil
	}
	if string(said) == "?" {
		return task.Outcome{}, errors.New("it says nothing")
	}
	o := decision(j, string(said))
	o.Exit, o.Result.Cost = exit, &envelope.Cost{Tokens: 5}
	if string(said) == "approved" {
		o.Result.Output.Extra = []byte(`{"decision":"approved"}`)
	}
	if j.Meter != nil {
		if err := j.Meter(*o.Result.Cost); err != nil {
			o.Result.Status, o.Result.Error = envelope.Failed, envelope.Error{Kind: envelope.BudgetExceeded, Message: err.Error()}
		}
	}
	return o, nil
}

// inbox returns what is in the inbox of the editor.
func (e *engine) inbox() string {
	text, err := os.ReadFile(filepath.Join(e.parts.Box.Path(), "agents", "editor", "inbox.jsonl"))
	if err != nil {
		return ""
	}
	return string(text)
}

// wantInbox fails the test when a task's line is not so often in the inbox.
func (e *engine) wantInbox(id string, times int) {
	e.t.Helper()
	if n := strings.Count(e.inbox(), `"task_id":"`+id+`"`); n != times {
		e.t.Errorf("the line of %s is %d times in the inbox; want %d:\n%s", id, n, times, e.inbox())
	}
}

// delivered sends a task to the editor, and blocks until it is in its inbox.
func (e *engine) delivered(id string, members ...string) {
	e.t.Helper()
	before := strings.Count(e.inbox(), "\n")
	e.send(id, "editor", members...)
	e.until(id+" is delivered", func() bool {
		was, err := e.parts.Ledger.Delivery(context.Background(), e.row(id).Seq)
		return err == nil && !was.Appended.IsZero()
	})
	if after := strings.Count(e.inbox(), "\n"); after != before+1 {
		e.t.Errorf("the inbox has %d lines after %s; want %d", after, id, before+1)
	}
}

// putResult puts a result file, as somebody would who finished it a minute ago.
func (e *engine) putResult(id, agent, summary string) {
	e.t.Helper()
	path := filepath.Join(e.parts.Box.ResultsDir(), id+".json")
	text := `{"schema_version":"1.0","task_id":"` + id + `","agent_id":"` + agent + `","status":"ok","output":{"summary":"` + summary + `","actions":[]}}`
	ago := time.Now().Add(-time.Minute)
	e.must(errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, ago, ago)))
	e.Look(e.t.Context())
}

func TestATaskWaitsInTheInboxOfItsAgentWithoutASlot(t *testing.T) {
	e := newEngine(t)
	e.opts.Workers = 1
	e.start()
	e.send("busy", "slow")
	e.await("busy", task.Running)
	e.delivered("t1", `"metadata":{"a":"b  c"}`)
	row := e.row("t1")
	if row.State != task.Waiting || row.Attempt != 1 {
		t.Errorf("t1 is %s, attempt %d; want waiting, 1", row.State, row.Attempt)
	}
	raw, err := e.parts.Ledger.Raw(t.Context(), row.Seq)
	e.must(err)
	if e.inbox() != string(raw)+"\n" {
		t.Errorf("the inbox has %q; want the exact line %q", e.inbox(), raw)
	}
	if _, err := os.Stat(e.parts.State.RunDir("t1", 1, 1)); err == nil {
		t.Error("there is a run directory")
	}
	e.wantEvent("t1", "task.waiting")
}

func TestIdleDoesNotWaitForWhoFetchesATaskButForItsDelivery(t *testing.T) {
	e := startEngine(t)
	for _, id := range []string{"t1", "t2", "t3"} {
		e.send(id, "editor")
	}
	e.must(e.Idle(t.Context()))
	for _, id := range []string{"t1", "t2", "t3"} {
		e.wantInbox(id, 1)
	}
}

func TestAResultFileOfTheAgentAnswersItsTask(t *testing.T) {
	e := startEngine(t)
	e.delivered("t1")
	e.putResult("t1", "editor", "by hand")
	if row := e.await("t1", task.Done); row.Status != envelope.OK {
		t.Errorf("t1 is %s; want ok", row.Status)
	}
	e.wantResult("t1", "by hand")
	e.wantEvent("t1", "result.adopted")
	runs, err := e.parts.Ledger.Runs(t.Context(), e.row("t1").Seq)
	e.must(err)
	if len(runs) != 1 || runs[0].Finished.IsZero() || !runs[0].Settled {
		t.Errorf("runs = %+v; want one that is over", runs)
	}
}

func TestAResultFileSignedBySomebodyElseAnswersNoTaskInAnInbox(t *testing.T) {
	e := startEngine(t)
	e.delivered("t1")
	e.putResult("t1", "quick", "not mine")
	e.await("t1", task.Held)
	e.wantHeld("t1", task.ResultInvalid)
	e.wantResult("t1", "not mine") // left alone
	e.must(os.Remove(filepath.Join(e.parts.Box.ResultsDir(), "t1.json")))
	e.ReevaluateAll()
	e.await("t1", task.Waiting)
	e.wantInbox("t1", 1) // where it was already
	e.putResult("t1", "editor", "mine")
	e.await("t1", task.Done)
	e.wantResult("t1", "mine")
}

func TestAResultFileThatSomebodyStillWritesHoldsNothing(t *testing.T) {
	e := startEngine(t)
	e.delivered("t1")
	path := filepath.Join(e.parts.Box.ResultsDir(), "t1.json")
	e.must(os.WriteFile(path, []byte(`{"schema_version":"1.0","task`), 0o600))
	e.Look(t.Context())
	if row := e.row("t1"); row.State != task.Waiting {
		t.Errorf("t1 is %s while its answer is written; want waiting", row.State)
	}
	e.putResult("t1", "editor", "whole")
	e.await("t1", task.Done)
	e.wantResult("t1", "whole")
}

func TestAResultFileThatHasToBeApprovedIsNotShownBefore(t *testing.T) {
	e := newEngine(t)
	e.judge = afterwards
	e.start()
	e.delivered("t1")
	e.putResult("t1", "editor", "in the open")
	e.await("t1", task.Review)
	e.until("the answer cannot be read", func() bool { return e.result("t1") == "" })
	e.restart()
	e.wantNothingShown("t1")
	e.must(e.Approve(t.Context(), "t1", core.Person{Names: []string{"bob"}}, ""))
	e.await("t1", task.Done)
	e.wantResult("t1", "in the open")
	if kinds, _ := e.history("t1"); slices.Contains(kinds, "result.conflict") || slices.Contains(kinds, "result.refused") {
		t.Errorf("events = %v; want no conflict with what is the answer", kinds)
	}
}

func TestAResultFileForAPausedTaskInAnInboxIsReviewedAsWell(t *testing.T) {
	e := newEngine(t)
	e.judge = afterwards
	e.start()
	e.must(e.Pause(t.Context(), "editor", me))
	e.send("t1", "editor")
	e.wantHeld("t1", task.Paused)
	e.putResult("t1", "editor", "early")
	e.await("t1", task.Review)
	e.until("the answer cannot be read", func() bool { return e.result("t1") == "" })
	e.must(e.Approve(t.Context(), "t1", core.Person{Names: []string{"bob"}}, ""))
	e.await("t1", task.Done)
	e.wantResult("t1", "early")
}

// An answer that took longer to write than a file is taken for unfinished.
func TestAResultFileThatIsFinishedLateIsReviewedAsWell(t *testing.T) {
	e := newEngine(t)
	e.judge = afterwards
	e.start()
	e.delivered("t1")
	path := filepath.Join(e.parts.Box.ResultsDir(), "t1.json")
	ago := time.Now().Add(-time.Minute)
	e.must(errors.Join(os.WriteFile(path, []byte(`{"schema_version":"1.0","task`), 0o600), os.Chtimes(path, ago, ago)))
	e.Look(t.Context())
	e.await("t1", task.Held)
	e.wantHeld("t1", task.ResultInvalid)
	e.putResult("t1", "editor", "whole")
	e.await("t1", task.Review)
	e.until("the answer cannot be read", func() bool { return e.result("t1") == "" })
}

// afterwards admits with an approval of the result.
func afterwards(asked envelope.Task, _ time.Time) task.Verdict {
	return task.Verdict{Admit: true, Terms: task.Terms{Deadline: asked.Deadline, Approval: envelope.ApprovalPost}}
}

func TestATaskThatNobodyAnswersEndsAtItsDeadline(t *testing.T) {
	e := newEngine(t)
	e.judge = func(_ envelope.Task, now time.Time) task.Verdict {
		return task.Verdict{Admit: true, Terms: task.Terms{Deadline: now.Add(50 * time.Millisecond)}}
	}
	e.start()
	e.send("t1", "editor")
	if row := e.await("t1", task.Done); row.Status != envelope.Failed || row.Kind != envelope.DeadlineExceeded {
		t.Errorf("t1 = %s (%s); want error (deadline_exceeded)", row.Status, row.Kind)
	}
	e.wantResult("t1", "did not answer it by")
}

func TestALaterRevisionReplacesWhatNobodyHasClaimed(t *testing.T) {
	e := startEngine(t)
	e.delivered("t1", `"metadata":{"n":1}`)
	e.delivered("t1", `"metadata":{"n":2}`)
	if row := e.row("t1"); row.State != task.Waiting || row.Revision != 2 {
		t.Errorf("t1 is %s, revision %d; want waiting, 2", row.State, row.Revision)
	}
	e.wantInbox("t1", 2)
	e.wantEvent("t1", "task.superseded")
	l, found, err := e.Claim(t.Context(), "editor", me, dispatch.Claimer{})
	if e.must(err); !found || l.Task.Revision != 2 {
		t.Errorf("claimed %+v, %v; want revision 2", l.Task, found)
	}
}

// blocked has a directory stand in the place of the inbox.
func (e *engine) blocked() (path string) {
	path = filepath.Join(e.parts.Box.Path(), "agents", "editor", "inbox.jsonl")
	e.must(os.MkdirAll(path, 0o700))
	return path
}

func TestWhatWasNotInTheInboxBeforeAStartIsPutThere(t *testing.T) {
	e := startEngine(t)
	path := e.blocked()
	e.send("t1", "editor")
	e.send("dead", "editor")
	e.await("t1", task.Waiting)
	e.await("dead", task.Waiting)
	e.must(e.Cancel(t.Context(), "dead", me))
	e.await("dead", task.Done)
	e.end()
	e.must(os.Remove(path))
	e.start()
	<-e.Ready()
	e.wantInbox("t1", 1)
	e.wantInbox("dead", 0)
	e.restart()
	<-e.Ready()
	e.wantInbox("t1", 1)
}

func TestATaskLiesInTheInboxInTheDialectOfItsAgent(t *testing.T) {
	e := newEngine(t)
	e.dialects = map[string]envelope.Dialect{"editor": envelope.CAP}
	e.start()
	e.send("t1", "editor")
	e.say(req("m1", "editor"), `{"type":"delegation_notice","task_id":"T1","sender_id":"user","recipient_id":"editor","context_summary":"look","mood":"good"}`)
	e.must(e.Idle(t.Context()))
	lines := strings.Split(strings.TrimSpace(e.inbox()), "\n")
	for i, id := range []string{"t1", "m1", "T1"} {
		if len(lines) != 3 || !strings.Contains(lines[i], fmt.Sprintf(`"type":"delegation_notice","task_id":%q`, id)) {
			t.Fatalf("the inbox has %q; want %s in CAP, as one of three", lines, id)
		}
	}
	if strings.Contains(lines[2], "mood") || !strings.Contains(lines[2], `"timestamp":`) {
		t.Errorf("the inbox has %s; want what every reader of CAP takes", lines[2])
	}
}

func TestATaskInCLowlLiesInTheInboxAsEveryReaderTakesIt(t *testing.T) {
	e := newEngine(t)
	e.dialects = map[string]envelope.Dialect{"editor": envelope.CLowl}
	e.secrets = map[string]string{"ann": "sesame"}
	e.start()
	e.say(`{"clowl":"0.2","mid":"m1","ts":1709078400.0,"tid":null,"pid":null,"p":"REQ","from":"ann","to":"editor","cid":"c1","body":{"t":"x","d":{}},"auth":"sesame","mood":"good"}`)
	e.await("m1", task.Waiting)
	e.must(e.Idle(t.Context()))
	if line := e.inbox(); !strings.Contains(line, `"mid":"m1"`) || strings.Contains(line, "mood") || strings.Contains(line, "null") || strings.Contains(line, "auth") {
		t.Errorf("the inbox has %s; want the request without what not every reader takes, and no secret", line)
	}
}

// A line that mailboxd wrote into an inbox is ignored in a task file, in every dialect.
func TestATaskInAnInboxIsNoRequestOfItsOwn(t *testing.T) {
	for _, speaks := range []envelope.Dialect{envelope.AINL, envelope.CLowl, envelope.CAP} {
		t.Run(string(speaks), func(t *testing.T) {
			e := newEngine(t)
			e.dialects = map[string]envelope.Dialect{"editor": speaks}
			e.start()
			e.ask("ann", "t1", "editor")
			e.say(word{mid: "m1", p: "REQ", from: "ann", to: "editor", more: `,"mood":"good"`}.line())
			e.say(`{"type":"delegation_notice","task_id":"T1","sender_id":"ann","recipient_id":"editor","context_summary":"look"}`)
			e.must(e.Idle(t.Context()))
			before := e.letters("ann")
			e.say(e.letters("editor")...)
			e.must(e.Idle(t.Context()))
			if after := e.letters("ann"); len(after) != len(before) {
				t.Errorf("ann is told %q; want nothing of what mailboxd wrote", after[len(before):])
			}
			if n := len(e.letters("editor")); n != 3 {
				t.Errorf("the inbox has %d lines; want the 3 tasks", n)
			}
			for _, id := range []string{"t1", "m1", "T1"} {
				if row := e.row(id); row.Revision != 1 || row.State != task.Waiting {
					t.Errorf("%s is %s, revision %d; want it waiting as it was", id, row.State, row.Revision)
				}
			}
		})
	}
}
