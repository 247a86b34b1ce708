package gateway

import (
	"testing"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/decisions/task"
)

func TestEachStateOfATaskIsOneOfTheProtocol(t *testing.T) {
	want := map[task.State]a2a.TaskState{
		task.Received: a2a.TaskStateWorking, task.Held: a2a.TaskStateWorking, task.Queued: a2a.TaskStateWorking,
		task.Running: a2a.TaskStateWorking, task.Waiting: a2a.TaskStateWorking, task.Review: a2a.TaskStateWorking,
		task.Done: a2a.TaskStateCompleted,
	}
	for _, s := range task.States() {
		row := client.Task{State: s}
		switch s {
		case task.Held:
			row.Held = []task.Reason{task.Approval}
		case task.Done:
			row.Status = envelope.OK
		}
		got, why := stateOf(row)
		if got != want[s] || (why == "") != got.Terminal() {
			t.Errorf("stateOf(%s) = %s, %q; want %s, with a reason unless it is done", s, got, why, want[s])
		}
	}
}

func TestOnlyAReplyAndALoginAreWhatAHeldTaskWantsOfItsClient(t *testing.T) {
	of := map[task.Reason]a2a.TaskState{task.Reply: a2a.TaskStateInputRequired, task.AuthRequired: a2a.TaskStateAuthRequired}
	for _, r := range task.Reasons() {
		want := a2a.TaskStateWorking
		if special, ok := of[r]; ok {
			want = special
		}
		got, why := stateOf(client.Task{State: task.Held, Held: []task.Reason{r}})
		if got != want || why != r.Facts().Sentence {
			t.Errorf("stateOf(held: %s) = %s, %q; want %s, %q", r, got, why, want, r.Facts().Sentence)
		}
	}
	got, why := stateOf(client.Task{State: task.Held, Held: []task.Reason{task.Paused, task.Reply}})
	if want := "Its agent asked a question. Its agent is paused."; got != a2a.TaskStateInputRequired || why != want {
		t.Errorf("stateOf(held: paused, reply) = %s, %q; want %s, %q", got, why, a2a.TaskStateInputRequired, want)
	}
}

func TestTheStatusOfAResultIsTheStateOfATaskThatIsDone(t *testing.T) {
	for _, c := range []struct {
		status envelope.Status
		kind   envelope.Kind
		want   a2a.TaskState
	}{
		{envelope.OK, "", a2a.TaskStateCompleted},
		{envelope.Partial, "", a2a.TaskStateCompleted},
		{envelope.Failed, envelope.AgentCrashed, a2a.TaskStateFailed},
		{envelope.Failed, envelope.ApprovalDenied, a2a.TaskStateFailed},
		{envelope.Stopped, envelope.Cancelled, a2a.TaskStateCanceled},
		{envelope.Rejected, envelope.ApprovalDenied, a2a.TaskStateRejected},
		{envelope.Rejected, envelope.PolicyViolation, a2a.TaskStateRejected},
		{"half done", "", a2a.TaskStateCompleted},
		{"stuck", envelope.AgentError, a2a.TaskStateFailed},
	} {
		if got, _ := stateOf(client.Task{State: task.Done, Status: c.status, Kind: c.kind}); got != c.want {
			t.Errorf("stateOf(done: %s, %s) = %s; want %s", c.status, c.kind, got, c.want)
		}
	}
}

// The daemon takes a line that it has met before as no other message.
func TestAReplyThatComesAgainIsTheSameLine(t *testing.T) {
	about := client.Task{ID: "t1", Agent: "asker", Received: time.Now().Add(-time.Hour)}
	m := message{Message: a2a.NewMessage(a2a.MessageRoleUser), text: "the second"}
	var lines [2]string
	for i := range lines {
		line, err := replyLine(call{sender: Sender{Name: "acme"}}, m, about, nameOf("acme", m.ID))
		if err != nil {
			t.Fatal(err)
		}
		lines[i] = string(line)
	}
	if lines[0] != lines[1] {
		t.Errorf("the lines are\n%s\n%s", lines[0], lines[1])
	}
}
