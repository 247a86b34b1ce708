package api_test

import (
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// talkAbout puts a task into the ledger that somebody asked for in CAP, and one
// below it, with what was said.
func (h *fixture) talkAbout(t *testing.T) {
	t.Helper()
	err := h.memory.Update(t.Context(), func(tx *ledger.Tx) error {
		parent := int64(0)
		for _, id := range []envelope.ID{"T1", "T1.1"} {
			row := task.Task{
				ID: id, Revision: 1, Hash: string(id), Dialect: envelope.CAP, State: task.Held, Reasons: []task.Reason{task.Operator},
				Agent: "a", Requester: "user", Received: time.Now(), Parent: parent,
			}
			line := `{"type":"delegation_notice","task_id":"` + string(id) + `","sender_id":"user","recipient_id":"a","context_summary":"look"}`
			seq, err := tx.Add(row, []byte(line))
			if err != nil {
				return err
			}
			parent = seq
			if err := tx.StartConversation(task.Conversation{Task: seq, Thread: "T1", Trace: "x1", Tie: envelope.Assist}); err != nil {
				return err
			}
			if err := tx.Log(task.Event{Time: time.Now(), Kind: "task.accepted", Task: id, Revision: 1}); err != nil {
				return err
			}
			_, err = tx.Record(task.Message{
				Time: time.Now(), Dialect: envelope.CAP, Act: envelope.Requests, Task: seq, Thread: "T1", Trace: "x1", From: "user", To: "a",
				Via: task.ByLine, Lost: []string{"pid"}, Body: []byte(line),
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAConversationIsTold(t *testing.T) {
	h := open(t, stranger)
	h.talkAbout(t)
	for _, id := range []string{"T1", "T1.1", "x1"} {
		d, err := h.Thread(t.Context(), id)
		if err != nil || len(d.Tasks) != 2 || len(d.Messages) != 2 || len(d.Events) != 2 {
			t.Fatalf("Thread(%s) = %+v, %v; want two of each", id, d, err)
		}
		part, said := d.Tasks[1], d.Messages[0]
		if part.Task.ID != "T1.1" || part.Parent != "T1" || part.Tie != string(envelope.Assist) || part.Asks != "look" || part.Task.Dialect != "cap" {
			t.Errorf("Thread(%s) has the task %+v; want T1.1, which assists T1", id, part)
		}
		if said.Task != "T1" || said.Text != "look" || said.Act != string(envelope.Requests) || len(said.Line) == 0 || said.Lost[0] != "pid" {
			t.Errorf("Thread(%s) has the message %+v; want the request, with its words and its line", id, said)
		}
	}
	if d, err := h.Trace(t.Context(), "T1.1"); err != nil || d.Kind != "trace" || d.ID != "x1" {
		t.Errorf("Trace(T1.1) = %s %s, %v; want trace x1", d.Kind, d.ID, err)
	}
	for _, id := range []string{"T2", "", "../x"} {
		if _, err := h.Thread(t.Context(), id); kindOf(err) != client.NoTask {
			t.Errorf("Thread(%q) = %v; want %s", id, err, client.NoTask)
		}
	}
	file, err := h.Details(t.Context(), "T1")
	if err != nil || file.Conversation == nil || file.Conversation.Thread != "T1" || len(file.Messages) != 1 {
		t.Errorf("Details(T1) = %+v, %v; want its talk and what was said about it", file, err)
	}
}

// A task of AINL is a conversation too: its own, or that of the task above it, or
// the one that it names.
func TestATaskOfAINLHasAConversation(t *testing.T) {
	h := open(t, stranger)
	h.remember(t, "t1", "t2")
	d, err := h.Thread(t.Context(), "t1")
	if err != nil || d.ID != "t1" || len(d.Tasks) != 1 || len(d.Messages) != 0 || len(d.Events) != 1 {
		t.Errorf("Thread(t1) = %+v, %v; want the task alone", d, err)
	}
	if d, err := h.Trace(t.Context(), "t1"); err != nil || d.Kind != "thread" {
		t.Errorf("Trace(t1) = %s, %v; want the thread, for it is part of no trace", d.Kind, err)
	}
}
