package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/decisions/task"
)

// reasonsOf says what a task waits for.
func reasonsOf(reasons any) string {
	list, _ := reasons.([]any)
	var words []string
	for _, r := range list {
		reason, _ := r.(string)
		words = append(words, cmp.Or(task.Reason(reason).Facts().Awaits, term.OneLine(reason)))
	}
	return strings.Join(words, " and ")
}

// describeEvent describes an event; "" for one that does not matter to the conversation.
// Later events show what came of it.
func (l Timeline) describeEvent(e client.Event, later []client.Event) string {
	about, _ := l.part(e.Task)
	id, agent, data := term.OneLine(string(e.Task)), term.OneLine(about.Task.Agent), EventData(e.Data)
	by := term.OneLine(fmt.Sprint(cmp.Or(data["by"], any("nobody"))))
	switch e.Kind {
	case task.KindTaskAccepted:
		return l.describeRequest(about, data)
	case task.KindTaskHeld:
		return id + " waits for " + reasonsOf(data["reasons"])
	case task.KindTaskStarted:
		return fmt.Sprintf("%s starts on %s (attempt %v)", agent, id, data["attempt"])
	case task.KindTaskWaiting:
		return fmt.Sprintf("%s lies in the inbox of %s", id, agent)
	case task.KindTaskClaimed:
		return fmt.Sprintf("%s fetches %s", agent, id)
	case task.KindTaskProgress:
		return fmt.Sprintf("%s reports on %s: %s", agent, id, howFar(data))
	case task.KindTaskRetried:
		return fmt.Sprintf("%s fails at %s (%s), which is tried again", agent, id, term.OneLine(fmt.Sprint(cmp.Or(data["error"], data["status"]))))
	case task.KindTaskFinished:
		if shownLater(e, later) {
			return fmt.Sprintf("%s answers %s", agent, id)
		}
	case task.KindTaskDuplicate:
		return id + " comes again with the same content: ignored"
	case task.KindTaskDuplicateConflict:
		return id + " comes again with different content: refused"
	case task.KindTaskResubmitted:
		return fmt.Sprintf("%s is tried once more, by %s", id, by)
	case task.KindApprovalAsked:
		return fmt.Sprintf("%s is asked to approve %s", term.OneLine(fmt.Sprint(cmp.Or(data["approver"], any("a person")))), subject(id, data))
	case task.KindApprovalApproved:
		return fmt.Sprintf("%s approves %s%s", by, subject(id, data), noteOf(data))
	case task.KindApprovalDenied:
		return fmt.Sprintf("%s does not approve %s%s", by, subject(id, data), noteOf(data))
	case task.KindOversightApproved, task.KindOversightInquired:
		return l.describeReview(e, about)
	case task.KindOversightRejected, task.KindOversightExpired:
		return fmt.Sprintf("the answer of %s is withheld: %s", agent, term.OneLine(fmt.Sprint(data["reason"])))
	case task.KindApprovalExpired:
		return "nobody approves " + subject(id, data) + " in time"
	}
	return ""
}

// describeReview describes the decision of an overseer that was no message.
func (l Timeline) describeReview(e client.Event, about client.Part) string {
	data := EventData(e.Data)
	review, words := envelope.ID(fmt.Sprint(data["task"])), ""
	act := []string{string(envelope.Informs), string(envelope.Completes)}
	if e.Kind == task.KindOversightInquired {
		act = append(act, string(envelope.Inquires))
	}
	said := slices.ContainsFunc(l.Messages, func(m client.Message) bool {
		return m.Task == review && m.From == data["by"] && slices.Contains(act, m.Act) && m.Via != string(task.ByDaemon)
	})
	if said {
		return ""
	}
	if text, ok := data["words"].(string); ok && text != "" {
		words = ": " + quoted(text)
	}
	by, id := term.OneLine(fmt.Sprint(data["by"])), term.OneLine(string(about.Task.ID))
	if e.Kind == task.KindOversightApproved {
		return fmt.Sprintf("%s approves %s%s", by, id, words)
	}
	return fmt.Sprintf("%s sends %s back to %s%s", by, id, term.OneLine(about.Task.Agent), words)
}

// describeRequest describes a request that was no message, and what it waits for.
func (l Timeline) describeRequest(about client.Part, data map[string]any) string {
	id, words := term.OneLine(string(about.Task.ID)), ""
	said := slices.ContainsFunc(l.Messages, func(m client.Message) bool {
		return m.Task == about.Task.ID && (m.Act == string(envelope.Requests) || m.Act == string(envelope.Delegates))
	})
	if !said {
		words = fmt.Sprintf("%s asks %s to do %s", term.OneLine(about.Task.Requester), term.OneLine(about.Task.Agent), id)
		if about.Asks != "" {
			words += ": " + quoted(about.Asks)
		}
	}
	if held := reasonsOf(data["held"]); held != "" {
		words = strings.TrimPrefix(words+"; "+id+" waits for "+held, "; ")
	}
	return words
}

// shownLater reports whether the answer needs an approval first.
func shownLater(e client.Event, later []client.Event) bool {
	for _, next := range later {
		if next.Task == e.Task {
			return next.Kind == task.KindApprovalAsked || strings.HasPrefix(string(next.Kind), "oversight.")
		}
	}
	return false
}

// subject is what an approval is for: a task, or its answer.
func subject(id string, data map[string]any) string {
	switch data["stage"] {
	case string(envelope.ApprovalPost):
		return "the answer to " + id
	case string(envelope.ApprovalTool):
		return "a call of a tool for " + id
	}
	return id
}

// noteOf returns the note of a decision.
func noteOf(data map[string]any) string {
	if note, ok := data["note"].(string); ok && note != "" {
		return ": " + quoted(note)
	}
	return ""
}

// howFar formats a progress report.
func howFar(data map[string]any) string {
	note, _ := data["note"].(string)
	pct, ok := data["pct"].(float64)
	switch {
	case ok && note != "":
		return fmt.Sprintf("%.0f %%, %s", pct, quoted(note))
	case ok:
		return fmt.Sprintf("%.0f %%", pct)
	}
	return quoted(note)
}

// endOf describes the end of a task.
func endOf(p client.Part) string {
	t, words := p.Task, ""
	switch t.Status {
	case envelope.OK, envelope.Partial:
		words = fmt.Sprintf("%s is done: %s", term.OneLine(string(t.ID)), t.Status)
		if p.Answer != "" {
			words += ", " + quoted(p.Answer)
		}
		return words
	case envelope.Rejected:
		words = fmt.Sprintf("%s is refused (%s)", term.OneLine(string(t.ID)), t.Kind)
	case envelope.Stopped:
		words = term.OneLine(string(t.ID)) + " is cancelled"
	default:
		words = fmt.Sprintf("%s ends in %s (%s)", term.OneLine(string(t.ID)), term.OneLine(string(t.Status)), t.Kind)
	}
	if p.Answer != "" {
		words += ": " + quoted(p.Answer)
	}
	return words
}
