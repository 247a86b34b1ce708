package dialect

import "mailboxd/envelope"

// clutchLosses returns what Clutch has no words of its own for (docs/dialects.md).
func clutchLosses(m envelope.Message) []string {
	var lost losses
	lost.add("unknown fields", m.Extra != nil)
	if m.Dialect == envelope.Clutch {
		return lost
	}
	if asks(m.Act) {
		t := m.Request
		lost.add("role", t.Role != "")
		lost.add("contract", t.Contract != nil)
		lost.add("sensitivity", sensitive(t))
		lost.add("deadline", !t.Deadline.IsZero())
		lost.add("approval", t.Approval != envelope.ApprovalNone)
		lost.add("approver", t.HumanApprover != "")
		lost.add("callback", t.Callback != envelope.Callback{})
		lost.add("policy_context", t.Environment != "" || t.ChangeWindows != nil)
		lost.add("metadata", len(t.Metadata) > 0)
	}
	if m.Act == envelope.Completes {
		lost.add("cost", m.Answer.Cost != nil)
		lost.add("time", m.Answer.Time != envelope.TimeUsed{})
		lost.add("review", m.Answer.Review != envelope.Review{})
		lost.add("provenance", m.Answer.Provenance != envelope.Provenance{})
	}
	lost.add("det", m.Deterministic)
	lost.add("delegation mode", m.Tie != "" && m.Tie != envelope.Assist)
	lost.add("hash", m.Context.Hash != "")
	return lost
}
