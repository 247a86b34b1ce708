package dialect

import (
	"slices"

	"mailboxd/envelope"
)

// capLosses returns what CAP has no words for (docs/dialects.md).
func capLosses(m envelope.Message) []string {
	if m.Dialect == envelope.CAP {
		return nil
	}
	name := capTask(m)
	_, _, retry := Code(m.Failure.Kind)
	var lost losses
	lost.add("pid", m.Cause != "" && m.Cause != name)
	lost.add("cid", m.Thread != "" && m.Thread != capThread(name))
	lost.add("tid", m.Trace != "")
	lost.add("det", m.Deterministic)
	lost.add("hash", m.Context.Hash != "")
	lost.add("multicast", len(m.To) > 1)
	lost.add("progress numbers", m.Act == envelope.Reports && (m.Data != nil && m.Clutch == nil || progressOf(m) != nil))
	lost.add("retry flag", m.Act == envelope.Fails && m.Failure.Retry != retry)
	lost.add("unknown fields", m.Extra != nil)
	lost.add("CNCL", m.Act == envelope.Cancels)
	lost.add("status", m.Act == envelope.Completes && m.Answer.Status != "" && m.Answer.Status != envelope.OK)
	if m.Dialect == envelope.Clutch {
		lost.clutch(m)
		lost.add("group", slices.ContainsFunc(m.Clutch.Recipients, func(r envelope.Recipient) bool { return r.Group }))
	}
	if asks(m.Act) {
		lost.task(m.Request)
	}
	if m.Act == envelope.Completes {
		lost.answer(m.Answer)
	}
	return lost
}
