package conversation

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// MessageID names the message about an event that does something: the same each time, so that an
// inbox and a replay have the same names, and another one in another ledger.
func MessageID(e task.Event, act envelope.Act) string {
	return messageName("event", e.Seq, string(act), e.Time)
}

// outcomeID names the message about the end of a task.
func outcomeID(seq int64, received time.Time) string {
	return messageName("task", seq, "end", received)
}

func messageName(of string, seq int64, what string, when time.Time) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%d\n%s\n%d", of, seq, what, when.UnixMilli()))
	return "msg_" + hex.EncodeToString(sum[:12])
}

// ends are the events that can end a task. Of several, the last one did.
var ends = []task.Kind{
	task.KindTaskFinished, task.KindTaskCancelled, task.KindTaskRejected, task.KindTaskSuperseded, task.KindResultAdopted,
	task.KindApprovalApproved, task.KindApprovalDenied, task.KindApprovalExpired,
	task.KindOversightApproved, task.KindOversightRejected, task.KindOversightExpired,
}

// EndOf returns the event that ended a revision, and whether there is one: it is among the events,
// and the task is done. The events are those of its task.
func EndOf(row task.Task, events []task.Event) (end task.Event, found bool) {
	if row.State != task.Done {
		return end, false
	}
	for _, e := range events {
		if e.Revision == row.Revision && slices.Contains(ends, e.Kind) && e.Seq > end.Seq {
			end, found = e, true
		}
	}
	return end, found
}

// ChosenBy returns the Seq of the event that chose the agent of a revision, which came without
// one: its requester learns by it that the task is accepted. It is 0 for a request that named its
// agent, and later than any event if no agent was chosen yet. The events are those of the task.
func ChosenBy(revision int, events []task.Event) int64 {
	waits := false
	for _, e := range events {
		switch {
		case e.Revision != revision:
		case e.Kind == task.KindTaskAccepted || e.Kind == task.KindTaskResubmitted:
			waits = slices.Contains(detailOf(e).Held, string(task.Routing))
		case e.Kind == task.KindRoutingDecided && waits:
			return e.Seq
		}
	}
	if waits {
		return math.MaxInt64
	}
	return 0
}

// IsRouted reports whether a request names no agent, so that one is chosen for it.
func IsRouted(t envelope.Task) bool { return t.Agent == envelope.Everybody || t.Clutch.Routed() }

// WithSignature returns a request whose signature is marked as verified, if it was so when the request was accepted. The
// events are those of the task.
func WithSignature(t envelope.Task, revision int, events []task.Event) envelope.Task {
	accepted := slices.ContainsFunc(events, func(e task.Event) bool {
		return e.Kind == task.KindTaskAccepted && e.Revision == revision && detailOf(e).Kid != ""
	})
	if accepted && t.Clutch.IsSigned() {
		t.Clutch = t.Clutch.Verify()
	}
	return t
}
