package ledger_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// After a kill right after Update, the ledger has the messages, the pending deliveries, and the
// requesters with further notifications.
func TestWhatWasSaidSurvivesAPowerCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := openAt(t, path)
	seq := add(t, l, named("t1", 1, task.Queued))[0]
	conversation := task.Conversation{Task: seq, Message: "m1", Thread: "c1", Trace: "x1", Tie: envelope.Assist, Open: true}
	said := task.Message{
		Time: noon, Dialect: envelope.CLowl, Act: envelope.Accepts, ID: "a1", Cause: "m1", Task: seq, Thread: "c1", Trace: "x1",
		From: "worker", To: "asker", Via: task.ByDaemon, Hash: "h1", Lost: []string{"x", "y"}, Inbox: "agents/asker/inbox.jsonl", Body: []byte(`{"p":"ACK"}`),
	}
	update(t, l, func(tx *ledger.Tx) (err error) {
		said.Seq, err = tx.Record(said)
		return errors.Join(err, tx.StartConversation(conversation), tx.Announce(task.Announcement{Name: "worker", Supports: []string{"search:web"}, Since: noon}))
	})
	after := openAt(t, copyOf(t, path, "", 0))
	got, ok, err := after.Conversation(context.Background(), seq)
	if err != nil || !ok || got != conversation {
		t.Errorf("Talk() = %+v, %t, %v; want %+v", got, ok, err, conversation)
	}
	due, err := after.Due(context.Background(), 0, 10)
	if err != nil || len(due) != 1 || !cmp.Equal(due[0], said) {
		t.Errorf("Due() = %+v, %v; want %+v", due, err, said)
	}
	if open, err := after.WithOpenNotifications(context.Background()); err != nil || !slices.Equal(open, []int64{seq}) {
		t.Errorf("OpenTalks() = %v, %v; want that of t1", open, err)
	}
	update(t, after, func(tx *ledger.Tx) error {
		speakers, err := tx.Announcements()
		if err == nil && (len(speakers) != 1 || speakers[0].Name != "worker" || !slices.Equal(speakers[0].Supports, []string{"search:web"})) {
			t.Errorf("Speakers() = %+v; want the worker and what it takes", speakers)
		}
		return err
	})
}

func TestACallOfAToolInAnEarlierLedgerHasTheActOfToday(t *testing.T) {
	l := open(t)
	seq := add(t, l, named("t1", 1, task.Queued))[0]
	var said int64
	update(t, l, func(tx *ledger.Tx) (err error) {
		said, err = tx.Record(task.Message{
			Time: noon, Act: envelope.Act(task.KindToolCalled), Task: seq, From: "ken", To: "user", Via: task.ByRun, Hash: "h1",
		})
		return err
	})
	if m, err := l.Message(context.Background(), said); err != nil || m.Act != envelope.Calls {
		t.Errorf("Message() = %+v, %v; want the act %s", m, err, envelope.Calls)
	}
}

func TestATalkIsToldUpToAnEventAndThenOver(t *testing.T) {
	l := open(t)
	seqs := add(t, l, named("t1", 1, task.Queued), named("t2", 1, task.Queued))
	update(t, l, func(tx *ledger.Tx) error {
		return errors.Join(tx.StartConversation(task.Conversation{Task: seqs[0], Thread: "t1", Open: true}),
			tx.Log(task.Event{Kind: "task.accepted", Task: "t1", Revision: 1, Time: noon}),
			tx.Log(task.Event{Kind: "task.accepted", Task: "t2", Revision: 1, Time: noon}),
			tx.Log(task.Event{Kind: "task.finished", Task: "t1", Revision: 1, Time: noon}))
	})
	update(t, l, func(tx *ledger.Tx) error {
		news, err := tx.EventsSince(seqs[0], 0)
		if err != nil || len(news) != 2 || news[1].Kind != "task.finished" {
			t.Fatalf("News(0) = %+v, %v; want the two of t1", news, err)
		}
		if err := tx.MarkNotified(seqs[0], news[0].Seq, true); err != nil {
			return err
		}
		conversation, _, err := tx.Conversation(seqs[0])
		if err != nil || conversation.Notified != news[0].Seq || !conversation.Open {
			t.Errorf("Talk() = %+v, %v; want it told up to %d and open", conversation, err, news[0].Seq)
		}
		left, err := tx.EventsSince(seqs[0], conversation.Notified)
		if err != nil || len(left) != 1 || left[0].Kind != "task.finished" {
			t.Errorf("News(%d) = %+v, %v; want the end alone", conversation.Notified, left, err)
		}
		return tx.MarkNotified(seqs[0], left[0].Seq, false)
	})
	if open, err := l.WithOpenNotifications(context.Background()); err != nil || len(open) > 0 {
		t.Errorf("OpenTalks() = %v, %v; want none", open, err)
	}
}

func TestRoundsAreCountedForATaskThatIsTalkedAbout(t *testing.T) {
	l := open(t)
	seq := add(t, l, named("t1", 1, task.Review))[0]
	update(t, l, func(tx *ledger.Tx) error { return tx.StartConversation(task.Conversation{Task: seq}) })
	for want := 1; want <= 2; want++ {
		update(t, l, func(tx *ledger.Tx) error {
			if got, err := tx.SendBack(seq); err != nil || got != want {
				t.Errorf("SendBack() = %d, %v; want %d", got, err, want)
			}
			return nil
		})
	}
	update(t, l, func(tx *ledger.Tx) error {
		if _, err := tx.SendBack(seq + 1); !errors.Is(err, ledger.ErrUnknown) {
			t.Errorf("SendBack(no conversation) = %v; want ErrUnknown", err)
		}
		return nil
	})
}

func TestMessagesArePostedInTheirOrderOnce(t *testing.T) {
	l := open(t)
	var seqs []int64
	update(t, l, func(tx *ledger.Tx) error {
		seqs = nil
		for _, inbox := range []string{"agents/a/inbox.jsonl", "", "agents/b/inbox.jsonl", "agents/a/inbox.jsonl"} {
			seq, err := tx.Record(task.Message{Time: noon, Inbox: inbox, Via: task.ByDaemon})
			if err != nil {
				return err
			}
			seqs = append(seqs, seq)
		}
		return tx.MarkDelivered(seqs[0], noon)
	})
	for _, c := range []struct {
		after int64
		limit int
		want  []int64
	}{
		{0, 10, []int64{seqs[2], seqs[3]}},
		{0, 1, []int64{seqs[2]}},
		{seqs[2], 10, []int64{seqs[3]}},
	} {
		due, err := l.Due(context.Background(), c.after, c.limit)
		var got []int64
		for _, m := range due {
			got = append(got, m.Seq)
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("Due(%d, %d) = %v, %v; want %v", c.after, c.limit, got, err, c.want)
		}
	}
}

func TestMessagesAreFoundByNameContentAndCause(t *testing.T) {
	l := open(t)
	record := func(m task.Message) {
		t.Helper()
		update(t, l, func(tx *ledger.Tx) error { _, err := tx.Record(m); return err })
	}
	record(task.Message{Time: noon, ID: "ours", Via: task.ByDaemon, Hash: "h0"})
	record(task.Message{Time: noon, ID: "m1", Via: task.ByLine, Hash: "h1", Act: envelope.Requests})
	record(task.Message{Time: noon, ID: "m1", Via: task.ByLine, Hash: "h2", Act: envelope.Requests})
	record(task.Message{Time: noon, ID: "c1", Cause: "m1", From: "ann", Via: task.ByLine, Hash: "h3", Act: envelope.Cancels})
	record(task.Message{Time: noon, ID: "c2", Cause: "m1", From: "eve", Via: task.ByLine, Hash: "h4", Act: envelope.Cancels})
	update(t, l, func(tx *ledger.Tx) error {
		if _, ok, err := tx.MessageWithID("ours"); ok || err != nil {
			t.Errorf("MessageNamed(ours) = %t, %v; want none: we may use a name again", ok, err)
		}
		if _, ok, err := tx.MessageWithID(""); ok || err != nil {
			t.Errorf("MessageNamed(no name) = %t, %v; want none", ok, err)
		}
		if m, ok, err := tx.MessageWithID("m1"); !ok || err != nil || m.Hash != "h1" {
			t.Errorf("MessageNamed(m1) = %+v, %t, %v; want the first one", m, ok, err)
		}
		if m, ok, err := tx.AnyMessageWithID("ours"); !ok || err != nil || m.Hash != "h0" {
			t.Errorf("Named(ours) = %+v, %t, %v; want ours", m, ok, err)
		}
		if m, ok, err := tx.MessageWithHash("h2"); !ok || err != nil || m.ID != "m1" {
			t.Errorf("Said(h2) = %+v, %t, %v; want m1", m, ok, err)
		}
		if m, err := tx.Replies("m1", envelope.Cancels, "ann", noon); err != nil || len(m) != 1 || m[0].ID != "c1" {
			t.Errorf("Replies(m1, ann) = %+v, %v; want c1", m, err)
		}
		if m, err := tx.Replies("m1", envelope.Cancels, "ann", noon.Add(time.Second)); err != nil || len(m) > 0 {
			t.Errorf("Replies(m1, ann, later) = %+v, %v; want none", m, err)
		}
		return nil
	})
}

// What an agent hears again is what it said and what was said to it, about its
// task and those below it; not what we said in its name.
func TestAConversationIsWhatItsAgentSaidAndHeard(t *testing.T) {
	l := open(t)
	seqs := add(t, l, named("t1", 1, task.Running))
	child, other := named("t1.1", 1, task.Done), named("t2", 1, task.Running)
	child.Parent, child.Agent = seqs[0], "helper"
	seqs = append(seqs, add(t, l, child, other)...)
	agent := named("t1", 1, task.Running).Agent
	for _, m := range []task.Message{
		{ID: "request", Task: seqs[0], From: "asker", To: agent, Via: task.ByLine},
		{ID: "ours", Task: seqs[0], From: agent, To: "asker", Via: task.ByDaemon},
		{ID: "delegation", Task: seqs[1], From: agent, To: "helper", Via: task.ByRun},
		{ID: "aside", Task: seqs[1], From: "helper", To: "somebody", Via: task.ByRun},
		{ID: "end", Task: seqs[1], From: "helper", To: agent, Via: task.ByDaemon},
		{ID: "elsewhere", Task: seqs[2], From: "asker", To: agent, Via: task.ByLine},
		{ID: "nowhere", From: "asker", To: agent, Via: task.ByLine},
	} {
		m.Time = noon
		update(t, l, func(tx *ledger.Tx) error { _, err := tx.Record(m); return err })
	}
	row, err := l.Task(context.Background(), seqs[0])
	if err != nil {
		t.Fatal(err)
	}
	conversation, err := l.ConversationMessages(context.Background(), row)
	var got []string
	for _, m := range conversation {
		got = append(got, m.ID)
	}
	if want := []string{"request", "delegation", "end"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("Conversation() = %v, %v; want %v", got, err, want)
	}
}

func TestChildrenAreListedWithTheirTies(t *testing.T) {
	l := open(t)
	parent := add(t, l, named("t1", 1, task.Held))[0]
	tied, plain := named("t1.1", 1, task.Queued), named("t1.2", 1, task.Queued)
	tied.Parent, plain.Parent = parent, parent
	seqs := add(t, l, tied, plain, named("t2", 1, task.Queued))
	update(t, l, func(tx *ledger.Tx) error {
		return tx.StartConversation(task.Conversation{Task: seqs[0], Tie: envelope.Transfer})
	})
	children, err := l.Dependents(context.Background(), parent)
	if err != nil || len(children) != 2 || children[0].ID != "t1.1" || children[0].Tie != envelope.Transfer || children[1].Tie != "" {
		t.Errorf("Offspring() = %+v, %v; want t1.1, a transfer, and t1.2, which has no tie", children, err)
	}
	if none, err := l.Dependents(context.Background(), 0); err != nil || len(none) > 0 {
		t.Errorf("Offspring(0) = %d, %v; want none: 0 is no task", len(none), err)
	}
}

func TestWhatIsInAThreadOrATraceIsListed(t *testing.T) {
	l := open(t)
	seqs := add(t, l, named("t1", 1, task.Queued), named("t2", 1, task.Queued))
	update(t, l, func(tx *ledger.Tx) error {
		_, err1 := tx.Record(task.Message{Time: noon, ID: "m1", Thread: "c1", Trace: "x", Via: task.ByLine})
		_, err2 := tx.Record(task.Message{Time: noon, ID: "m2", Thread: "c2", Trace: "x", Via: task.ByLine})
		return errors.Join(err1, err2, tx.StartConversation(task.Conversation{Task: seqs[0], Thread: "c1", Trace: "x"}), tx.StartConversation(task.Conversation{Task: seqs[1], Thread: "c2", Trace: "x"}))
	})
	ctx := context.Background()
	thread, err1 := l.LinkedMessages(ctx, "c1", "")
	trace, err2 := l.LinkedMessages(ctx, "", "x")
	none, err3 := l.LinkedMessages(ctx, "", "")
	inThread, err4 := l.LinkedTasks(ctx, "c2", "")
	inTrace, err5 := l.LinkedTasks(ctx, "", "x")
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil || len(thread) != 1 || len(trace) != 2 || len(none) > 0 ||
		!slices.Equal(inThread, seqs[1:]) || !slices.Equal(inTrace, seqs) {
		t.Errorf("thread %v, trace %v, no thread %v, tasks %v and %v, %v", thread, trace, none, inThread, inTrace, err)
	}
}

// A task's messages go when it is over and they are old; what is still to be
// told, posted or gathered keeps everything.
func TestMessagesGoWithTheirTaskAndNotBefore(t *testing.T) {
	l := open(t)
	over, open, child := named("over", 1, task.Queued), named("open", 1, task.Queued), named("child", 1, task.Queued)
	parent := add(t, l, named("parent", 1, task.Held))[0]
	child.Parent = parent
	seqs := add(t, l, over, open, child)
	for _, seq := range seqs {
		move(t, l, seq, task.Queued, 0, task.Change{To: task.Done, Status: envelope.OK, Result: []byte("{}")})
	}
	update(t, l, func(tx *ledger.Tx) error {
		var err error
		for i, seq := range seqs {
			_, failed := tx.Record(task.Message{Time: noon, Task: seq, Via: task.ByDaemon})
			err = errors.Join(err, failed, tx.MarkPut(seq, true), tx.StartConversation(task.Conversation{Task: seq, Open: i == 1}))
		}
		_, err1 := tx.Record(task.Message{Time: noon, ID: "chat", Via: task.ByLine})
		_, err2 := tx.Record(task.Message{Time: noon, ID: "due", Via: task.ByDaemon, Inbox: "agents/a/inbox.jsonl"})
		return errors.Join(err, err1, err2, tx.Announce(task.Announcement{Name: "a", Since: noon}))
	})
	later := time.Now().Add(time.Hour)
	want := ledger.Aged{Bodies: 1, Messages: 2}
	if aged, err := l.CountOver(context.Background(), later); err != nil || aged != want {
		t.Errorf("CountOver() = %+v, %v; want %+v", aged, err, want)
	}
	update(t, l, func(tx *ledger.Tx) error {
		_, messages, err1 := tx.DropMessages(later, 0, 100)
		_, bodies, err2 := tx.DropBodies(later, 0, 100)
		if messages != want.Messages || bodies != want.Bodies {
			t.Errorf("dropped %d messages and %d bodies; want %+v", messages, bodies, want)
		}
		_, gone, err3 := tx.Conversation(seqs[0])
		_, kept, err4 := tx.Conversation(seqs[2])
		speakers, err5 := tx.Announcements()
		if gone || !kept || len(speakers) != 1 {
			t.Errorf("conversation of a task that is over: %t, of a child that is still needed: %t, %d speakers; want no, yes, 1", gone, kept, len(speakers))
		}
		return errors.Join(err1, err2, err3, err4, err5)
	})
	update(t, l, func(tx *ledger.Tx) error { // young messages stay
		_, n, err := tx.DropMessages(noon, 0, 100)
		if n != 0 {
			t.Errorf("dropped %d messages from before there were any", n)
		}
		return err
	})
}
