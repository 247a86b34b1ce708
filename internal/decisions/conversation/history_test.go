package conversation_test

import (
	"strings"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/task"
)

func TestWhatAnAgentGetsWhenItRunsAgain(t *testing.T) {
	row := task.Task{Seq: 1, Agent: "worker"}
	for name, c := range map[string]struct {
		m    task.Message
		want bool
	}{
		"its request":                  {task.Message{Act: envelope.Requests, Task: 1}, false},
		"what it has delegated":        {task.Message{Act: envelope.Delegates, Task: 2}, true},
		"progress":                     {task.Message{Act: envelope.Reports, Task: 2}, false},
		"news":                         {task.Message{Act: envelope.Informs, Via: task.ByLine}, true},
		"news in other words":          {task.Message{Act: envelope.Informs, Via: task.ByDaemon, From: "ann"}, false},
		"news of the daemon":           {task.Message{Act: envelope.Informs, Via: task.ByDaemon, From: envelope.Mailboxd}, true},
		"an end that the daemon sends": {task.Message{Act: envelope.Fails, Via: task.ByDaemon, Task: 2, To: "worker"}, false},
		"an error of the daemon":       {task.Message{Act: envelope.Fails, Via: task.ByDaemon, Task: 1, To: "worker"}, true},
	} {
		if got := conversation.InHistory(c.m, row); got != c.want {
			t.Errorf("%s: InHistory() = %t; want %t", name, got, c.want)
		}
	}
}

func TestAQuestionIsTheResultUntilSomebodyReplies(t *testing.T) {
	asked := task.Outcome{Hold: task.Reply, Unanswered: envelope.Result{TaskID: "t1", AgentID: "a", Status: envelope.OK, Output: envelope.Output{Summary: "which?"}}}
	raw := conversation.Question(asked, 2, "", nil)
	if r := conversation.Unanswered(raw, 2); r == nil || r.Output.Summary != "which?" {
		t.Errorf("Unanswered(%s) = %+v; want the question", raw, r)
	}
	if r := conversation.Unanswered(raw, 3); r != nil {
		t.Errorf("Unanswered() = %+v; want none for a later attempt", r)
	}
	review := []task.Child{{Tie: envelope.Oversee}}
	waits := asked
	waits.Hold = task.Children
	for name, got := range map[string][]byte{
		"of an overseer":   conversation.Question(asked, 2, envelope.Oversee, nil),
		"in review":        conversation.Question(asked, 2, "", review),
		"beside others":    conversation.Question(waits, 2, "", nil),
		"without a result": conversation.Question(task.Outcome{Hold: task.Reply}, 2, "", nil),
	} {
		if got != nil {
			t.Errorf("%s: Question() = %s; want none", name, got)
		}
	}
}

func TestTheResultOfATaskThatWasReplaced(t *testing.T) {
	raw := envelope.Result{TaskID: "t1", AgentID: "a", Status: envelope.OK, Output: envelope.Output{Summary: "late"}}.Encode()
	stopped := task.Task{ID: "t1", Agent: "a", State: task.Done, Status: envelope.Stopped}
	if r := conversation.ResultOf(stopped, raw); r.Status != envelope.Stopped || r.Output.Summary != "" {
		t.Errorf("ResultOf() = %+v; want its status alone", r)
	}
	done := stopped
	done.Status = envelope.OK
	if r := conversation.ResultOf(done, raw); r.Output.Summary != "late" {
		t.Errorf("ResultOf() = %+v; want the result", r)
	}
}

// CAP-24.
func TestAReviewRequestHasTheAnswerAndItsRequester(t *testing.T) {
	r := conversation.ReviewRequest{
		Task: task.Task{ID: "t1", Agent: "worker", Requester: "boss"}, Overseer: "qa", Rule: "when unsure",
		Answer: envelope.Result{AgentID: "worker", Status: envelope.OK, Output: envelope.Output{Summary: "42"}},
	}
	m := r.Message()
	if m.Thread != "t1" || m.Text != "42" || m.To[0] != "qa" || m.Request.Type != "review" || m.Tie != envelope.Oversee {
		t.Errorf("Message() = %+v; want a review of t1 by qa", m)
	}
	if len(m.Attachments) != 3 || !strings.Contains(string(m.Attachments[0].Raw), `"task_id":"t1"`) || m.Attachments[1].Text != "asked for by boss" || m.Attachments[2].Text != "when_to_delegate: when unsure" {
		t.Errorf("attachments = %+v; want the answer, its requester and the rule", m.Attachments)
	}
	r.Rule, r.Submitted = "", envelope.Message{Text: "see", Attachments: []envelope.Attachment{{Type: "file"}}}
	if m = r.Message(); m.Text != "see" || len(m.Attachments) != 2 || m.Attachments[0].Type != "file" {
		t.Errorf("Message() = %+v; want the agent's words and attachments", m)
	}
}
