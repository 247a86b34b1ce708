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

	"github.com/go-json-experiment/json"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
	"mailboxd/internal/testtools/strict"
)

// foreign puts a task into the ledger that somebody asked for in another dialect
// than AINL, as the intake leaves it when it dies right after.
func (e *engine) foreign(d envelope.Dialect, raw string, change func(*task.Task, *task.Conversation)) {
	e.t.Helper()
	codec, _ := dialect.Of(d)
	m, findings := codec.Decode([]byte(raw), e.opts.Reading)
	if findings.Refused() {
		e.t.Fatalf("the test's own line is refused: %v", findings)
	}
	row := task.Task{
		ID: m.Request.ID, Revision: 1, Hash: m.Hash, Dialect: d, State: task.Queued, Agent: m.To[0], Requester: m.From,
		Type: m.Type, Received: time.Now(), File: "tasks/a.jsonl",
	}
	k := task.Conversation{Message: m.ID, Thread: m.Thread, Trace: m.Trace, Open: true}
	if change != nil {
		change(&row, &k)
	}
	data := []byte("{}")
	if len(row.Reasons) > 0 {
		data = fmt.Appendf(nil, `{"held":[%q]}`, row.Reasons[0])
	}
	e.must(e.parts.Ledger.Update(context.Background(), func(tx *ledger.Tx) (err error) {
		if k.Task, err = tx.Add(row, []byte(raw)); err != nil {
			return err
		}
		if err := tx.Log(task.Event{Time: time.Now(), Kind: "task.accepted", Task: row.ID, Revision: 1, Data: data}); err != nil {
			return err
		}
		return tx.StartConversation(k)
	}))
}

// delegated is foreign for a request that user makes in CAP.
func (e *engine) delegated(id, agent string, change func(*task.Task, *task.Conversation)) {
	e.t.Helper()
	e.foreign(envelope.CAP, fmt.Sprintf(`{"type":"delegation_notice","task_id":%q,"sender_id":"user","recipient_id":%q,"context_summary":"look at it"}`, id, agent), change)
}

// requested is foreign for a request that oscar makes in CLowl.
func (e *engine) requested(mid, agent string, change func(*task.Task, *task.Conversation)) {
	e.t.Helper()
	e.foreign(envelope.CLowl, fmt.Sprintf(`{"clowl":"0.2","mid":%q,"ts":1709078400,"tid":"x1","p":"REQ","from":"oscar","to":%q,"cid":"c1","body":{"t":"search","d":{}}}`, mid, agent), change)
}

// again starts the engine anew, and waits until nothing is left to do.
func (e *engine) again() {
	e.t.Helper()
	e.restart()
	<-e.Ready()
	e.must(e.Idle(e.t.Context()))
}

// letters returns the lines of a participant's inbox file.
func (e *engine) letters(name string) []string {
	e.t.Helper()
	text, err := os.ReadFile(filepath.Join(e.parts.Box.Path(), "agents", name, "inbox.jsonl"))
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// said returns what is remembered of what was said about a task.
func (e *engine) said(id string) []task.Message {
	e.t.Helper()
	said, err := e.parts.Ledger.About(context.Background(), e.row(id).Seq)
	e.must(err)
	return said
}

func TestARequesterFindsTheEndInItsInbox(t *testing.T) {
	e := startEngine(t)
	e.delegated("T1", "quick", nil)
	e.again()
	lines := e.letters("user")
	if len(lines) != 1 {
		t.Fatalf("inbox of user = %q; want one line", lines)
	}
	var got struct {
		Type      string `json:"type"`
		Task      string `json:"task_id"`
		From      string `json:"sender_id"`
		To        string `json:"recipient_id"`
		Content   string `json:"content"`
		Timestamp string `json:"timestamp"`
	}
	e.must(json.Unmarshal([]byte(lines[0]), &got))
	if got.Type != "message" || got.Task != "T1" || got.From != "quick" || got.To != "user" || got.Content != "done, revision 1" || got.Timestamp == "" {
		t.Errorf("inbox of user = %s; want a message of quick about T1 with its answer and a time", lines[0])
	}
	said := e.said("T1")
	if len(said) != 1 || said[0].Act != envelope.Completes || said[0].Delivered.IsZero() || said[0].Via != task.ByDaemon || said[0].Inbox != "agents/user/inbox.jsonl" || string(said[0].Body) != lines[0] {
		t.Errorf("remembered %+v; want the answer, posted", said)
	}
	e.wantResult("T1", `"status": "ok"`) // and AINL's file is there all the same
}

func TestWhatWasToldIsNotToldAgain(t *testing.T) {
	e := startEngine(t)
	e.delegated("T1", "quick", nil)
	for range 3 {
		e.again()
	}
	if lines := e.letters("user"); len(lines) != 1 {
		t.Errorf("inbox of user = %q; want one line after three starts", lines)
	}
	if open, err := e.parts.Ledger.WithOpenNotifications(t.Context()); err != nil || len(open) > 0 {
		t.Errorf("OpenTalks() = %v, %v; want none after the end", open, err)
	}
}

// A daemon that died between the line in the inbox and the mark in the ledger
// puts the same line there again, and never another one.
func TestALineThatMayNotHaveBeenPostedIsPostedAgain(t *testing.T) {
	e := startEngine(t)
	e.delegated("T1", "quick", nil)
	e.again()
	e.must(e.parts.Ledger.Update(t.Context(), func(tx *ledger.Tx) error { return tx.MarkDelivered(e.said("T1")[0].Seq, time.Time{}) }))
	e.again()
	lines := e.letters("user")
	if len(lines) != 2 || lines[0] != lines[1] {
		t.Errorf("inbox of user = %q; want the same line twice", lines)
	}
}

func TestAFailureIsToldWithItsCode(t *testing.T) {
	e := startEngine(t)
	e.plays["slow"] = func(_ context.Context, j task.Job) task.Outcome {
		o := decision(j, "nothing")
		o.Result.Status, o.Result.Error = envelope.Failed, envelope.Error{Kind: envelope.Timeout, Message: "too slow"}
		return o
	}
	e.delegated("T1", "slow", nil)
	e.again()
	if lines := e.letters("user"); len(lines) != 1 || !strings.Contains(lines[0], `"error_code":504,"error_message":"[timeout] too slow"`) {
		t.Errorf("inbox of user = %q; want one error_response with 504", lines)
	}
}

// What an agent reports while it runs is part of the events of a task that
// somebody hears about, and of no other.
func TestProgressIsRememberedWhereSomebodyHearsOfIt(t *testing.T) {
	e := startEngine(t)
	received := make(chan bool, 2)
	e.plays["quick"] = func(ctx context.Context, j task.Job) task.Outcome {
		received <- j.Report != nil
		if j.Report != nil {
			j.Report(envelope.Message{Act: envelope.Reports, Data: []byte(`{"pct":40,"note":"reading"}`)})
		}
		return decision(j, "done")
	}
	e.send("plain", "quick")
	e.await("plain", task.Done)
	if <-received {
		t.Error("a task of AINL has somebody to report to; want nobody")
	}
	e.delegated("T1", "quick", nil)
	e.again()
	e.wantEvent("T1", "task.progress")
	if _, data := e.history("T1"); !strings.Contains(data, `{"note":"reading","pct":40}`) {
		t.Errorf("events of T1 = %s; want what was reported", data)
	}
}

func TestAnInboxIsAFileOfItsOwnWhateverTheName(t *testing.T) {
	e := startEngine(t)
	names := []string{"../../etc", ".", "a/b", strings.Repeat("x", 300), "planner.v2", "plan ner"}
	for i, name := range names {
		e.delegated(fmt.Sprint("T", i), "quick", func(row *task.Task, _ *task.Conversation) { row.Requester = name })
	}
	e.delegated("T9", "quick", func(row *task.Task, _ *task.Conversation) { row.Requester = "editor" })
	e.again()
	entries, err := os.ReadDir(filepath.Join(e.parts.Box.Path(), "agents"))
	e.must(err)
	hashed := 0
	var plain []string
	for _, entry := range entries {
		if len(e.letters(entry.Name())) != 1 {
			t.Errorf("inbox of %s = %q; want one line", entry.Name(), e.letters(entry.Name()))
		}
		if strings.HasPrefix(entry.Name(), "h-") && len(entry.Name()) == 34 {
			hashed++
			continue
		}
		plain = append(plain, entry.Name())
	}
	if want := []string{"editor", "plan ner", "planner.v2"}; hashed != 4 || !slices.Equal(plain, want) {
		t.Errorf("%d digested names and %q; want 4 and %q", hashed, plain, want)
	}
}

// One inbox that cannot be written keeps nobody else's from being filled, nor
// the daemon from being idle, and gets everything in order once it can be.
func TestABadInboxIsOnlyItsOwnersTrouble(t *testing.T) {
	e := startEngine(t)
	agents := filepath.Join(e.parts.Box.Path(), "agents")
	e.must(os.MkdirAll(filepath.Join(agents, "bad", "inbox.jsonl"), 0o700))
	for i, requester := range []string{"bad", "good", "bad", "good"} {
		e.delegated(fmt.Sprint("T", i), "quick", func(row *task.Task, _ *task.Conversation) { row.Requester = requester })
	}
	e.again()
	if lines := e.letters("good"); len(lines) != 2 {
		t.Errorf("inbox of good = %q; want two lines", lines)
	}
	if n := e.log.count("messages cannot be put into agents/bad/inbox.jsonl"); n != 1 {
		t.Errorf("logged %d times that the bad inbox cannot be written; want once", n)
	}
	e.must(os.Remove(filepath.Join(agents, "bad", "inbox.jsonl")))
	e.again()
	if lines := e.letters("bad"); len(lines) != 2 {
		t.Errorf("inbox of bad = %q; want both lines after all", lines)
	}
}

// Nobody hears of AINL's own tasks in messages, so nothing is remembered of them.
func TestATaskOfAINLHasNoTalk(t *testing.T) {
	e := startEngine(t)
	e.send("t1", "quick")
	row := e.await("t1", task.Done)
	if _, ok, err := e.parts.Ledger.Conversation(t.Context(), row.Seq); ok || err != nil {
		t.Errorf("Talk(t1) = %t, %v; want none", ok, err)
	}
	if said := e.said("t1"); len(said) > 0 {
		t.Errorf("said about t1: %+v; want nothing", said)
	}
}

// What somebody said is posted in the form that every reader takes, whatever form
// they gave it, and is remembered as they said it.
func TestWhatOthersSaidIsPostedInTheStrictestForm(t *testing.T) {
	e := startEngine(t)
	raw := `{"type":"message","task_id":"T1","sender_id":"a","recipient_id":"b","content":"hello","mood":"good"}`
	e.must(e.parts.Ledger.Update(t.Context(), func(tx *ledger.Tx) error {
		_, err := tx.Record(task.Message{Time: time.Now(), Dialect: envelope.CAP, Act: envelope.Informs, From: "a", To: "b", Via: task.ByLine, Thread: "T1", Inbox: "agents/b/inbox.jsonl", Body: []byte(raw)})
		return err
	}))
	e.again()
	lines := e.letters("b")
	if len(lines) != 1 || strict.CAP([]byte(lines[0])) != nil || !strings.Contains(lines[0], `"content":"hello"`) {
		t.Errorf("inbox of b = %q; want the message with a time and nothing that CAP does not know: %v", lines, strict.CAP([]byte(lines[0])))
	}
	if kept, err := e.parts.Ledger.LinkedMessages(t.Context(), "T1", ""); err != nil || len(kept) != 1 || string(kept[0].Body) != raw {
		t.Errorf("Thread() = %+v, %v; want the line as it came", kept, err)
	}
}

// What a drained daemon had to say lies in the inboxes when it says that it is
// drained.
func TestDrainedMeansTold(t *testing.T) {
	e := startEngine(t)
	release := make(chan struct{})
	e.plays["quick"] = func(_ context.Context, j task.Job) task.Outcome {
		<-release
		return decision(j, "done")
	}
	e.delegated("T1", "quick", nil)
	e.restart()
	e.await("T1", task.Running)
	close(release)
	e.must(e.Drain(t.Context(), store.Everyone, core.By{Who: "me"}))
	if lines := e.letters("user"); len(lines) != 1 {
		t.Errorf("inbox of user = %q when drained; want the answer", lines)
	}
}
