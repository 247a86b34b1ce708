package dialect

import (
	"fmt"

	"mailboxd/envelope"
)

// ainlCodec is the mailbox's own dialect: an object without the marks of another dialect is an
// AgentTaskRequest. AINL's results and manifests are no messages of a mailbox.
type ainlCodec struct{}

func (ainlCodec) Decode(raw []byte, how envelope.Reading) (envelope.Message, envelope.Findings) {
	t, findings := envelope.DecodeTask(raw, how)
	return asked(t), findings
}

// asked returns a request of AINL as a message.
func asked(t envelope.Task) envelope.Message {
	m := envelope.Message{
		Raw: t.Raw, Hash: t.Hash, Dialect: envelope.AINL, Act: envelope.Requests,
		Task: t.ID, From: t.Requester, Thread: t.Named(envelope.ThreadID), Type: t.Type, Text: t.Description, Request: t,
	}
	if t.Agent != "" {
		m.To = []string{t.Agent}
	}
	return m
}

// Receive reads the answer of an agent. AINL has no other message of an agent.
func (ainlCodec) Receive(raw []byte, about envelope.Task) (envelope.Message, envelope.Findings) {
	r, findings := envelope.DecodeAnswer(raw)
	m := envelope.Message{
		Raw: raw, Dialect: envelope.AINL, Act: envelope.Completes, Task: about.ID, From: about.Agent,
		Thread: about.Named(envelope.ThreadID), Text: r.Output.Summary, Answer: r,
	}
	m.Hash, _ = envelope.ContentHash(raw)
	if about.Requester != "" {
		m.To = []string{about.Requester}
	}
	refuse := func(kind envelope.Kind, field, message string) {
		findings = append(findings, envelope.Finding{Kind: kind, Field: field, Message: message})
	}
	switch {
	case findings.Refused():
	case r.TaskID != "" && r.TaskID != about.ID:
		refuse(envelope.IdentityMismatch, "task_id", fmt.Sprintf("is another task, %q", r.TaskID))
	case r.AgentID != "" && r.AgentID != about.Agent:
		refuse(envelope.IdentityMismatch, "agent_id", fmt.Sprintf("is another agent, %q", r.AgentID))
	case r.Status == "" && r.Output.Summary == "":
		refuse(envelope.OutputInvalid, "", "has neither a status nor a summary")
	}
	if failed(r.Status) {
		m.Act, m.Failure = envelope.Fails, failureOf(r)
	}
	return m, findings
}

// failed reports whether the status means that the task was not done.
func failed(s envelope.Status) bool {
	return s == envelope.Failed || s == envelope.Stopped || s == envelope.Rejected
}

// failureOf returns the failure of a result.
func failureOf(r envelope.Result) envelope.Failure {
	kind, message := r.Error.Kind, r.Error.Message
	switch {
	case kind != "":
	case r.Status == envelope.Stopped:
		kind = envelope.Cancelled
	default:
		kind = envelope.AgentError
	}
	if message == "" {
		message = r.Output.Summary
	}
	return FailureOf(kind, message)
}
