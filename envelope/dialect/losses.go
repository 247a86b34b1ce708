package dialect

import "mailboxd/envelope"

// losses are the names of the parts that a dialect has no words of its own for.
type losses []string

func (l *losses) add(name string, there bool) {
	if there {
		*l = append(*l, name)
	}
}

// task adds the limits of a request, which only AINL has. They still bind: the ledger has them.
func (l *losses) task(t envelope.Task) {
	l.add("role", t.Role != "")
	l.add("contract", t.Contract != nil)
	l.add("sensitivity", sensitive(t))
	l.add("deadline", !t.Deadline.IsZero())
	l.add("budget", t.Budget != envelope.Budget{})
	l.add("tools", t.AllowedTools != nil)
	l.add("approval", t.Approval != envelope.ApprovalNone)
	l.add("approver", t.HumanApprover != "")
	l.add("callback", t.Callback != envelope.Callback{})
	l.add("policy_context", t.Environment != "" || t.ChangeWindows != nil)
	l.add("metadata", len(t.Metadata) > 0)
}

// answer adds the parts of an answer that only AINL has.
func (l *losses) answer(a envelope.Result) {
	l.add("confidence", a.Confidence != nil)
	l.add("cost", a.Cost != nil)
	l.add("time", a.Time != envelope.TimeUsed{})
	l.add("review", a.Review != envelope.Review{})
	l.add("provenance", a.Provenance != envelope.Provenance{})
}

// clutch adds the parts that only Clutch has. The limits among them still bind.
func (l *losses) clutch(m envelope.Message) {
	c := m.Clutch
	l.add("requires", len(c.Requires) > 0)
	l.add("prefers", len(c.Prefers) > 0)
	l.add("attempt", c.Attempt > 1)
	l.add("signature", c.Auth != envelope.Signature{})
	l.add("sandbox", c.SecurityPolicy.Sandbox != nil)
	l.add("network", c.SecurityPolicy.Network != "")
	l.add("domain", c.Domain != "")
	l.add("schema_ref", c.SchemaRef != "")
	l.add("payload_type", c.PayloadType != "" && !asks(m.Act))
	l.add("idempotency_key", c.IdempotencyKey != "")
	l.add("span", c.Trace != envelope.Trace{})
	l.add("run limit", c.MaxRuntime != 0)
	l.add("attachment kinds", len(c.Attachments) > 0)
	l.add("meta", c.Meta != nil)
	l.add("card", c.Card != nil)
	switch m.Act {
	case envelope.Calls, envelope.Returns, envelope.FailsTool:
		l.add("tool.*", true)
	case envelope.Routes, envelope.FailsToRoute:
		l.add("routing.*", true)
	case envelope.SendsHeartbeat:
		l.add("heartbeat", true)
	}
}
