package dispatch_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/stores/ledger"
	"mailboxd/internal/testtools/slowtest"
	"mailboxd/mailbox"
)

// inReview starts an engine with a task whose result waits for a person.
func inReview(t *testing.T) *engine {
	t.Helper()
	e := newEngine(t)
	e.judge = asking("plan", envelope.ApprovalPost)
	e.start()
	e.send("t1", "quick", `"callback":{"queue":"answers"}`)
	e.await("t1", task.Review)
	return e
}

// wantNothingShown fails the test when anybody can see an answer.
func (e *engine) wantNothingShown(id string) {
	e.t.Helper()
	if got := e.result(id); got != "" {
		e.t.Errorf("results/ has %s; want nothing before a person has agreed", got)
	}
	if _, err := os.Stat(filepath.Join(e.parts.Box.Path(), "queues")); err == nil {
		e.t.Error("the callback was made before a person has agreed")
	}
}

// wantWithheld fails the test when the answer of quick is shown, or lost.
func (e *engine) wantWithheld(id string) {
	e.t.Helper()
	if got := e.result(id); strings.Contains(got, "done, revision") {
		e.t.Errorf("result of %s = %s; want the answer not shown", id, got)
	}
	kept, err := e.parts.Ledger.Withheld(e.t.Context(), e.row(id).Seq)
	if err != nil || !strings.Contains(string(kept), "done, revision") {
		e.t.Errorf("Withheld(%s) = %s, %v; want the answer kept", id, kept, err)
	}
}

func TestAResultInReviewIsShownWhenAPersonAgrees(t *testing.T) {
	e := inReview(t)
	e.wantNothingShown("t1")
	e.restart()
	e.wantNothingShown("t1")
	wantState(t, e.Retry(t.Context(), "t1", me), "it is in review")
	e.must(e.Approve(t.Context(), "t1", ada, ""))
	row := e.await("t1", task.Done)
	if row.Status != envelope.OK || row.Attempt != 1 {
		t.Errorf("t1 = %s, attempt %d; want ok, 1", row.Status, row.Attempt)
	}
	e.wantResult("t1", "done, revision 1")
	line, err := os.ReadFile(filepath.Join(e.parts.Box.Path(), "queues", "answers.jsonl"))
	if err != nil || strings.Count(string(line), "\n") != 1 {
		t.Errorf("callback = %q, %v; want one line", line, err)
	}
	e.wantDecisions("t1", task.Approved)
	if c := e.asked("t1")[0]; c.Stage != envelope.ApprovalPost || c.Digest != row.ResultSum {
		t.Errorf("asked was %+v; want it about the result %s", c, row.ResultSum)
	}
}

func TestADeniedAnswerIsNotShownAndNotLost(t *testing.T) {
	e := inReview(t)
	e.must(e.Deny(t.Context(), "t1", ada, "names names"))
	row := e.await("t1", task.Done)
	if row.Status != envelope.Failed || row.Kind != envelope.ApprovalDenied {
		t.Errorf("t1 = %s (%s); want error (approval_denied)", row.Status, row.Kind)
	}
	e.wantResult("t1", `"error"`, `"approval_denied"`, "denied by ada: names names")
	e.wantWithheld("t1")
}

func TestAReviewThatNobodyMakesEndsInTimeAlsoOverARestart(t *testing.T) {
	slowtest.SkipShort(t, "it waits for seconds")
	e := newEngine(t)
	e.judge = asking("plan", envelope.ApprovalPost)
	e.ttl = 2 * time.Second
	e.start()
	e.send("t1", "quick")
	e.await("t1", task.Review)
	e.restart()
	row := e.await("t1", task.Done)
	if row.Status != envelope.Failed || row.Kind != envelope.ApprovalExpired {
		t.Errorf("t1 = %s (%s); want error (approval_expired)", row.Status, row.Kind)
	}
	e.wantResult("t1", `"approval_expired"`, "nobody approved it by")
	e.wantWithheld("t1")
	e.wantDecisions("t1", task.Expired)
}

func TestAReviewOutlivesTheDeadlineOfTheRun(t *testing.T) {
	e := newEngine(t)
	e.judge = asking("plan", envelope.ApprovalPost)
	e.start()
	soon := time.Now().Add(time.Second)
	e.plays["late"] = func(_ context.Context, j task.Job) task.Outcome {
		<-time.After(time.Until(soon))
		return decision(j, "done")
	}
	e.send("t1", "late", `"deadline":"`+soon.Format(time.RFC3339Nano)+`"`)
	e.await("t1", task.Review)
	e.ReevaluateAll()
	e.must(e.Approve(t.Context(), "t1", ada, ""))
	e.await("t1", task.Done)
	e.wantResult("t1", "done, revision 1")
}

func TestCancelInReviewShowsNoAnswer(t *testing.T) {
	e := inReview(t)
	e.must(e.Cancel(t.Context(), "t1", me))
	if row := e.await("t1", task.Done); row.Status != envelope.Stopped || row.Kind != envelope.Cancelled {
		t.Errorf("t1 = %s (%s); want cancelled", row.Status, row.Kind)
	}
	e.wantResult("t1", "cancelled by ada: looks wrong")
	e.wantWithheld("t1")
	e.wantDecisions("t1", task.Void)
}

func TestARunThatIsCancelledShowsNoAnswerWithoutReview(t *testing.T) {
	e := newEngine(t)
	e.judge = asking("plan", envelope.ApprovalPost)
	e.start()
	e.send("t1", "slow")
	e.await("t1", task.Running)
	e.must(e.Cancel(t.Context(), "t1", me))
	if row := e.await("t1", task.Done); row.Status != envelope.Stopped {
		t.Errorf("t1 = %s (%s); want cancelled", row.Status, row.Kind)
	}
}

func TestARevisionBehindAReviewWaitsForItsEnd(t *testing.T) {
	e := inReview(t)
	e.send("t1", "quick", `"metadata":{"n":2}`)
	if row := e.row("t1"); row.Revision != 2 || row.State != task.Received {
		t.Fatalf("revision %d is %s; want 2, received", row.Revision, row.State)
	}
	e.must(e.Approve(t.Context(), "t1", ada, "")) // the one in review, for the other is not asked about
	e.await("t1", task.Review)
	if old, err := e.parts.State.History("t1", 1); err != nil || !strings.Contains(string(old), "done, revision 1") {
		t.Errorf("history = %s, %v; want the first result", old, err)
	}
	e.must(e.Approve(t.Context(), "t1", ada, ""))
	e.await("t1", task.Done)
	e.wantResult("t1", "done, revision 2")
}

func TestAResultPlacedInReviewIsMovedToTheHistory(t *testing.T) {
	e := inReview(t)
	e.putResult("t1", "quick", "forged")
	e.until("nothing is shown", func() bool { return e.result("t1") == "" }) // a look may come before the review is known
	e.wantEvent("t1", "result.refused")
	e.wantRefused("t1", 1, "forged")
	if row := e.row("t1"); row.State != task.Review {
		t.Errorf("t1 is %s; want it in review still", row.State)
	}
	e.must(e.Deny(t.Context(), "t1", ada, ""))
	e.await("t1", task.Done)
	e.wantResult("t1", "approval_denied")
	if kinds, _ := e.history("t1"); slices.Contains(kinds, "result.adopted") {
		t.Errorf("events = %v; want nothing adopted", kinds)
	}
}

// wantRefused fails the test when the n-th refused result file of a task is not in the history.
func (e *engine) wantRefused(id string, n int, words string) {
	e.t.Helper()
	name := "1.refused.json"
	if n > 1 {
		name = fmt.Sprintf("1.refused.%d.json", n)
	}
	text, err := os.ReadFile(filepath.Join(e.parts.State.Path(), "history", id, name))
	if err != nil || !strings.Contains(string(text), words) {
		e.t.Errorf("%s = %s, %v; want %q", name, text, err, words)
	}
}

// A file that comes between the last look and the answer's own file.
func TestAResultPlacedJustBeforeTheAnswerIsShownBlocksNothing(t *testing.T) {
	for name, decide := range map[string]func(*engine) error{
		"approved": func(e *engine) error { return e.Approve(e.t.Context(), "t1", ada, "") },
		"denied":   func(e *engine) error { return e.Deny(e.t.Context(), "t1", ada, "wrong") },
	} {
		t.Run(name, func(t *testing.T) {
			e := inReview(t)
			e.must(os.WriteFile(filepath.Join(e.parts.Box.ResultsDir(), "t1.json"), []byte(forged), 0o600)) // nobody looks
			e.must(decide(e))
			e.await("t1", task.Done)
			if e.wantRefused("t1", 1, "forged"); strings.Contains(e.result("t1"), "forged") {
				t.Errorf("result = %s; want what mailboxd has to say", e.result("t1"))
			}
		})
	}
}

const forged = `{"schema_version":"1.0","task_id":"t1","agent_id":"quick","status":"ok","output":{"summary":"forged","actions":[]}}`

func TestADirectoryInThePlaceOfAResultInReviewIsToldOnce(t *testing.T) {
	e := inReview(t)
	path := filepath.Join(e.parts.Box.ResultsDir(), "t1.json")
	e.must(os.Mkdir(path, 0o700))
	for range 3 {
		e.Look(t.Context())
	}
	e.until("the conflict is told", func() bool {
		kinds, _ := e.history("t1")
		return slices.Contains(kinds, "result.conflict")
	})
	e.Look(t.Context())
	e.wantEvent("t1", "result.conflict")
	e.must(os.Remove(path))
	e.putResult("t1", "quick", "forged")
	e.until("nothing is shown", func() bool { return e.result("t1") == "" })
	e.must(e.Approve(t.Context(), "t1", ada, ""))
	e.await("t1", task.Done)
	e.wantResult("t1", "done, revision 1")
}

func TestAConflictThatSeveralFindIsToldOnce(t *testing.T) {
	e := inReview(t)
	row := e.row("t1")
	e.must(os.Mkdir(filepath.Join(e.parts.Box.ResultsDir(), "t1.json"), 0o700))
	var finders errgroup.Group
	for range 8 {
		finders.Go(func() error { return e.ReconsiderReview(t.Context(), row) })
	}
	e.must(finders.Wait())
	e.wantEvent("t1", "result.conflict")
}

// Killed between any two steps, the same steps are made again.
func TestARefusedResultIsMovedOnceAlsoWhenThatWasCutShort(t *testing.T) {
	e := newEngine(t)
	e.judge = asking("plan", envelope.ApprovalPre)
	e.start()
	e.send("t1", "quick")
	e.putResult("t1", "quick", "forged")
	e.until("nothing is shown", func() bool { return e.result("t1") == "" })
	ago := e.writtenAt("t1")
	e.end()
	kept := filepath.Join(e.dir, "state", "history", "t1", "1.refused.json")
	back := filepath.Join(e.dir, "box", "results", "t1.json")
	e.must(os.Link(kept, back)) // as after a kill before the removal
	e.must(os.Chtimes(back, ago, ago))
	e.start()
	e.Look(t.Context())
	e.until("nothing is shown", func() bool { return e.result("t1") == "" })
	e.wantEvent("t1", "result.refused")
	e.putResult("t1", "quick", "other") // is another file
	e.until("nothing is shown", func() bool { return e.result("t1") == "" })
	if kinds, _ := e.history("t1"); len(slices.DeleteFunc(kinds, func(k string) bool { return k != "result.refused" })) != 2 {
		t.Error("the second file is not told of")
	}
	e.wantRefused("t1", 2, "other")
	e.must(e.Approve(t.Context(), "t1", ada, ""))
	e.await("t1", task.Done)
	e.wantResult("t1", "done, revision 1")
}

// writtenAt is when the refused result file of a task was written.
func (e *engine) writtenAt(id string) (at time.Time) {
	e.t.Helper()
	_, data := e.history(id)
	_, rest, _ := strings.Cut(data, `"written":"`)
	text, _, _ := strings.Cut(rest, `"`)
	at, err := time.Parse(time.RFC3339Nano, text)
	e.must(err)
	return at
}

// AINL-85: an agent that asks for another attempt gets round no review.
func TestAResultPlacedBetweenAttemptsIsNoWayRoundTheReview(t *testing.T) {
	e := newEngine(t)
	e.judge = asking("plan", envelope.ApprovalPost)
	e.plays["sly"] = func(ctx context.Context, j task.Job) task.Outcome {
		if j.Attempt > 1 {
			return quick(ctx, j)
		}
		own := decision(j, "nobody needs to look").Result
		if err := e.parts.Box.PutResult(j.Task.ID, own.Encode(), 0o600); err != nil {
			t.Error(err)
		}
		o := decision(j, "later")
		o.Exit, o.Retry = task.Exit{Started: time.Now(), Finished: time.Now(), Code: 75}, true
		return o
	}
	e.start()
	e.send("t1", "sly")
	e.await("t1", task.Review)
	kinds, _ := e.history("t1")
	if slices.Contains(kinds, "result.adopted") {
		t.Errorf("the events of t1 is %v; want nothing adopted", kinds)
	}
}

func TestATaskForWhichNothingRanNeedsNoReview(t *testing.T) {
	e := newEngine(t)
	e.judge = asking("plan", envelope.ApprovalPost)
	e.plays["absent"] = func(_ context.Context, j task.Job) task.Outcome {
		return task.Outcome{Exit: task.Exit{Code: -1}, Result: envelope.Result{
			TaskID: j.Task.ID, Status: envelope.Rejected, Error: envelope.Error{Kind: envelope.SpawnFailed},
		}}
	}
	e.start()
	e.send("t1", "absent")
	e.await("t1", task.Done)
	e.wantResult("t1", `"rejected"`, `"agent_spawn_failed"`)
}

func TestBothAsksBeforeAndAfter(t *testing.T) {
	e := newEngine(t)
	e.judge = asking("plan", envelope.ApprovalBoth)
	e.start()
	e.send("t1", "quick", `"human_approver":"ada"`)
	e.must(e.Approve(t.Context(), "t1", ada, "start"))
	e.await("t1", task.Review)
	wantForbidden(t, e.Approve(t.Context(), "t1", eve, ""), "only ada")
	e.must(e.Approve(t.Context(), "t1", ada, "show"))
	e.await("t1", task.Done)
	e.wantDecisions("t1", task.Approved, task.Approved)
	kinds, _ := e.history("t1")
	want := []string{
		"task.accepted", "approval.asked", "approval.approved", "task.queued", "task.started",
		"task.finished", "approval.asked", "approval.refused", "approval.approved",
	}
	if !slices.Equal(kinds, want) {
		t.Errorf("events = %v; want %v", kinds, want)
	}
}

// A run that is found at the start ends under the terms it was begun with.
func TestARunOfAnEarlierDaemonIsReviewedToo(t *testing.T) {
	parts := places(t)
	row := remember(t, parts.Ledger, task.Task{ID: "x", Revision: 1, State: task.Held, Attempt: 0})
	err := parts.Ledger.Update(t.Context(), func(tx *ledger.Tx) error {
		if _, err := tx.Move(row.Seq, task.Held, 0, task.Change{To: task.Running, Attempt: 1}); err != nil {
			return err
		}
		return tx.StartRun(task.Run{Task: row.Seq, Attempt: 1, ID: "run", Intent: time.Now(), Boot: runner.Boot(),
			Terms: task.Terms{Approval: envelope.ApprovalPost, Approver: "ada"}})
	})
	if err != nil {
		t.Fatal(err)
	}
	d := serve(t, parts, obliging(make(chan task.Job, 9)), 1)
	d.Look(t.Context()) // which waits until the run was found
	if err := d.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantState(t, d.Release(t.Context(), "x", me), "it is in review")
	wantForbidden(t, d.Approve(t.Context(), "x", eve, ""), "only ada")
	if err := d.Approve(t.Context(), "x", ada, ""); err != nil {
		t.Fatal(err)
	}
	if text, err := mailbox.ReadResult(parts.Box.Path(), "x"); err != nil || !strings.Contains(string(text), `"ok"`) {
		t.Errorf("result = %s, %v; want the answer", text, err)
	}
}
