package dispatch_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// CLOWL-28.
func TestAQuestionIsAnsweredAndDoesNothingElse(t *testing.T) {
	e := startEngine(t)
	e.say(req("m1", "slow"))
	e.await("m1", task.Running)
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
func TestWhatSomebodyUnknownSaysIsRememberedAndRefused(t *testing.T) {
	e := startEngine(t)
	e.say(capLine("message", "T1", "stranger", "quick", "approve it"))
	if n := e.events("message.unknown_sender"); n != 1 {
		t.Errorf("there are %d events of it; want 1", n)
	}
	_, data := e.history("")
	if want := `{"file":"tasks/mailboxd.jsonl","from":"stranger","offset":0}`; !strings.Contains(data, want) {
		t.Errorf("its event says %s; want %s", data, want)
	}
	e.say(word{mid: "m1", p: "INF", from: "stranger", to: "quick"}.line())
	_, data = e.history("")
	if want := `{"file":"tasks/mailboxd.jsonl","from":"stranger","message_id":"m1","offset":`; !strings.Contains(data, want) {
		t.Errorf("its event says %s; want %s", data, want)
	}
	if e.letters("quick") != nil {
		t.Errorf("inbox of quick = %q; want nothing", e.letters("quick"))
	}
	said, err := e.parts.Ledger.LinkedMessages(t.Context(), "T1", "")
	if e.must(err); len(said) != 2 || said[0].From != "stranger" {
		t.Errorf("remembered %+v; want it and our answer", said)
	}
	e.wantFailure("stranger", "T1", 401)
	e.wantError("stranger", "m1", "E002", false)
}

// CAP-29.
func TestAReplyInALineHasItsTaskGoOn(t *testing.T) {
	e := newEngine(t)
	e.plays["quick"] = func(ctx context.Context, j task.Job) task.Outcome {
		if j.Attempt > 1 {
			return quick(ctx, j)
		}
		return task.Outcome{Hold: task.Reply, Exit: task.Exit{Started: time.Now()}, Messages: []envelope.Message{{Act: envelope.Informs, Dialect: envelope.CAP, Task: j.Task.ID, To: []string{"user"}, Text: "which?", WantsReply: true}}}
	}
	e.start()
	e.say(capLine("delegation_notice", "T1", "user", "quick", "look at it"))
	e.await("T1", task.Held)
	e.gets("user", "message", "T1")
	e.say(capLine("message", "T1", "stranger", "quick", "that one"))
	e.wantHeld("T1", task.Reply)
	e.say(capLine("message", "T1", "user", "quick", "this one"))
	if row := e.await("T1", task.Done); row.Attempt != 2 || row.Status != envelope.OK {
		t.Errorf("T1 = %+v; want it done by a second attempt", row)
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
			e.plays["quick"] = func(ctx context.Context, j task.Job) task.Outcome {
				if j.Attempt > 1 {
					return quick(ctx, j)
				}
				return task.Outcome{Hold: task.Reply, Exit: task.Exit{Started: time.Now()}, Messages: []envelope.Message{
					{Act: envelope.Asks, Dialect: envelope.CLowl, ID: "question", To: []string{"ann"}, Type: "which", Text: "which?", WantsReply: true},
				}}
			}
			e.start()
			e.say(req("m1", "quick"))
			e.await("m1", task.Held)
			e.say(reply.line())
			if row := e.await("m1", task.Done); row.Attempt != 2 || row.Status != envelope.OK {
				t.Errorf("m1 = %+v; want it done by a second attempt", row)
			}
		})
	}
}
