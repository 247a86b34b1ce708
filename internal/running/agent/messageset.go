package agent

import (
	"errors"
	"slices"
	"strings"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/task"
)

// errNoAnswer is what is wrong with messages after which nothing can go on.
var errNoAnswer = errors.New("the agent said nothing that its task could go on with: no answer, no question, nothing handed over")

// A messageSet sorts the messages of one run.
type messageSet struct {
	answer   *envelope.Message  // the last one that completes or fails the agent's task; nil for none
	others   []envelope.Message // the others, in order
	hold     task.Reason        // the reason why the task waits, if there is no answer
	question *envelope.Message  // the result if the question gets no reply in time; nil for none
}

// sortMessages finds the answer among messages, or the reason why the task waits. The last
// answer counts, then delegated work, then questions. With an answer, delegated work isn't
// part of the task any more. A last answer that may be a question is one.
func sortMessages(messages []envelope.Message, about envelope.Task, overseer string) (messageSet, error) {
	messages = slices.Clone(messages)
	var t messageSet
	final, asked := finalOf(messages, about, overseer), -1
	if final >= 0 {
		last := messages[final]
		if t.answer = &last; last.WantsReply {
			t.answer, t.question, final, asked = nil, &last, -1, final
		}
	}
	for i, m := range messages {
		switch {
		case i == final && m.Act != envelope.Delegates:
			continue
		case i == asked:
			m.Act, m.Answer = envelope.Informs, envelope.Result{}
		case settles(m, about) && overseer != "": // it would bypass the overseer (CAP-24)
			continue
		case settles(m, about): // a later answer replaces it
			m.Act, m.Answer, m.WantsReply = envelope.Informs, envelope.Result{}, false
		case final >= 0 && (m.Tie == envelope.Transfer || m.Tie == envelope.Assist):
			m.Tie = envelope.Fork
		}
		t.others = append(t.others, m)
	}
	if t.answer == nil {
		t.hold = waitsFor(t.others, about)
	}
	if t.answer == nil && t.hold == "" {
		return messageSet{}, errNoAnswer
	}
	return t, nil
}

// finalOf returns the index of the answer; -1 for none. It marks a delegation to the
// overseer.
func finalOf(messages []envelope.Message, about envelope.Task, overseer string) int {
	final := -1
	for i := range messages {
		m := &messages[i]
		if m.Act == envelope.Delegates && overseer != "" && slices.Equal(m.To, []string{overseer}) {
			m.Tie = envelope.Oversee // CAP-24
		}
		submitted := final >= 0 && messages[final].Tie == envelope.Oversee
		if settles(*m, about) && !(submitted && m.WantsReply) || final < 0 && m.Tie == envelope.Oversee {
			final = i
		}
	}
	return final
}

// settles reports whether a message is an answer to the task.
func settles(m envelope.Message, about envelope.Task) bool {
	return (m.Act == envelope.Completes || m.Act == envelope.Fails) && m.Answer.Status != "" && m.Task == about.ID
}

// waitsFor returns what a task without an answer waits for. A reply to a question resumes a task
// that also waits for delegated tasks, unless one of them took it over. A message that may be the
// answer (CAP-33), or that is only news, is no such question.
func waitsFor(messages []envelope.Message, about envelope.Task) task.Reason {
	delegated, asked, informed := false, false, false
	for _, m := range messages {
		switch {
		case m.Act == envelope.Delegates && m.Tie == envelope.Transfer:
			return task.Children
		case m.Act == envelope.Delegates && m.Tie == envelope.Assist:
			delegated = true
		case m.Act == envelope.Asks || m.Act == envelope.Inquires || m.Act == envelope.Calls || m.WantsReply && m.Dialect == envelope.CLowl,
			conversation.NoMode(m): // the reply is the error
			asked = true
		case m.WantsReply, m.Act == envelope.Informs && slices.ContainsFunc(m.To, func(to string) bool { return to != about.Requester }):
			informed = true
		}
	}
	switch {
	case asked, informed && !delegated:
		return task.Reply
	case delegated:
		return task.Children
	}
	return ""
}

// reason says in a sentence what a task waits for.
func (t messageSet) reason() string {
	var names []string
	for _, m := range t.others {
		handed := m.Act == envelope.Delegates && m.Tie != envelope.Fork
		if t.hold == task.Children && handed || t.hold == task.Reply && m.Act != envelope.Reports && !handed {
			for _, name := range m.To {
				if !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
	}
	if t.hold == task.Children {
		return "The agent waits for what it handed to " + strings.Join(names, ", ") + "."
	}
	return "The agent waits for a reply of " + strings.Join(names, ", ") + "."
}
