package dialect

import "mailboxd/envelope"

// ainl is the mailbox's own dialect: what no other one marks is an
// AgentTaskRequest. Its results and manifests are no messages.
type ainl struct{}

func (ainl) Marks([]byte) bool { return true }

func (ainl) Decode(raw []byte, how envelope.Reading) (envelope.Message, envelope.Findings) {
	t, findings := envelope.DecodeTask(raw, how)
	return asked(t), findings
}

// asked is a request of AINL's as a message.
func asked(t envelope.Task) envelope.Message {
	return envelope.Message{
		Raw: t.Raw, Hash: t.Hash, Dialect: envelope.AINL, Act: envelope.Requests,
		Task: t.ID, From: t.Requester, To: []string{t.Agent},
		Thread: t.Named("mbx.thread_id"), Type: t.Type, Text: t.Description, Request: t,
	}
}
