package conversation

import (
	"cmp"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// ReviewWork is the type of an overseer's task.
const ReviewWork = "review"

// NoAnswer reports whether a result with a status has no answer to review.
func NoAnswer(status envelope.Status) bool {
	return status == envelope.Failed || status == envelope.Stopped || status == envelope.Rejected
}

// Unapproved removes the parts of a failure that would need an approval; only the reason
// stays. It returns other results unchanged.
func Unapproved(r envelope.Result) envelope.Result {
	if !NoAnswer(r.Status) {
		return r
	}
	why := cmp.Or(r.Error.Message, "The agent's answer is withheld: its status is "+string(r.Status)+".")
	r.Output = envelope.Output{Summary: why, Enforcement: r.Output.Enforcement}
	r.Artifacts, r.Confidence, r.Extra = nil, nil, nil
	return r
}

// Broken reports whether something other than the agent's choice ended a run.
func Broken(o task.Outcome) bool {
	if o.Exit.Cause != "" || o.Exit.Code != 0 || o.Exit.Signal != "" {
		return true
	}
	switch o.Result.Error.Kind {
	case envelope.SpawnFailed, envelope.SandboxUnavailable, envelope.AgentCrashed, envelope.OutputInvalid, envelope.OutputTooLarge, envelope.OutOfMemory, envelope.IdentityMismatch,
		envelope.RunLost, envelope.Cancelled, envelope.ContractViolation, envelope.BudgetExceeded, envelope.PolicyViolation:
		return true
	}
	return o.Result.Status == envelope.Stopped
}

// A ReviewRequest asks the overseer of an agent to review an answer (CAP-24).
type ReviewRequest struct {
	Task         task.Task
	Conversation task.Conversation
	Sensitivity  envelope.Sensitivity
	Answer       envelope.Result
	Submitted    envelope.Message // the agent's request to the overseer; zero: none
	Overseer     string
	Rule         string // the requester's delegation rule for the agent; "" for none
	Time         time.Time
}

// Message returns the request, without its Task and Dialect. It has the agent's submission
// or else the whole answer, and the requester and the rule.
func (r ReviewRequest) Message() envelope.Message {
	r.Answer.TaskID = r.Task.ID
	line := jsontext.Value(r.Answer.EncodeLine())
	data := map[string]any{
		"task_id": r.Task.ID, "agent_id": r.Task.Agent, "requester_id": r.Task.Requester,
		"summary": r.Answer.Output.Summary, "result": line,
	}
	attachments := append([]envelope.Attachment{}, r.Submitted.Attachments...)
	if r.Submitted.Text == "" {
		object := encode(map[string]any{"type": "python_object", "object": line})
		attachments = []envelope.Attachment{{Type: "python_object", Raw: object}}
	}
	attachments = append(attachments, envelope.Attachment{Type: "text_snippet", Text: "asked for by " + r.Task.Requester})
	if r.Rule != "" {
		data["when_to_delegate"] = r.Rule
		attachments = append(attachments, envelope.Attachment{Type: "text_snippet", Text: "when_to_delegate: " + r.Rule})
	}
	m := envelope.Message{
		Act: envelope.Requests, Tie: envelope.Oversee, Thread: cmp.Or(r.Conversation.Thread, string(r.Task.ID)), Trace: r.Conversation.Trace,
		From: r.Task.Agent, To: []string{r.Overseer}, Time: r.Time, Type: ReviewWork, Data: encode(data),
		Text: cmp.Or(r.Submitted.Text, r.Answer.Output.Summary), Attachments: attachments,
	}
	m.Request = envelope.Task{Requester: m.From, Agent: r.Overseer, Type: ReviewWork, Description: m.Text, Payload: m.Data, Sensitivity: r.Sensitivity}
	return m
}

// encode encodes data that always has a JSON form.
func encode(data any) jsontext.Value {
	text, err := json.Marshal(data, json.Deterministic(true))
	if err != nil {
		panic("encode a message: " + err.Error())
	}
	return text
}
