package agent

import (
	"errors"
	"slices"
	"strings"

	"mailboxd/envelope"
	"mailboxd/internal/task"
)

// errNoTurn is what is wrong with messages after which nothing can go on.
var errNoTurn = errors.New("the agent said nothing that its task could go on with: no answer, no question, nothing handed over")

// A turn is what the messages of one run come to.
type turn struct {
	answer   *envelope.Message  // the last that completes or fails the agent's task; nil for none
	said     []envelope.Message // the others, in order
	hold     task.Reason        // what the task waits for, if there is no answer
	question *envelope.Message  // what is the answer if nobody replies to it in time; nil for none
}

// takeTurn finds the answer among messages, or what the task waits for. The last
// answer counts; then work that was handed over; then questions. What an agent
// hands over beside its answer is no part of its task any more. A last answer that
// may be a question is one.
func takeTurn(said []envelope.Message, about envelope.Task, overseer string) (turn, error) {
	said = slices.Clone(said)
	var t turn
	final, asked := finalOf(said, about, overseer), -1
	if final >= 0 {
		last := said[final]
		if t.answer = &last; last.WantsReply {
			t.answer, t.question, final, asked = nil, &last, -1, final
		}
	}
	for i, m := range said {
		switch {
		case i == final && m.Act != envelope.Delegates:
			continue
		case i == asked:
			m.Act, m.Answer = envelope.Informs, envelope.Result{}
		case settles(m, about) && overseer != "": // nobody will have approved of it (CAP-24)
			continue
		case settles(m, about): // it thought better of it
			m.Act, m.Answer, m.WantsReply = envelope.Informs, envelope.Result{}, false
		case final >= 0 && (m.Tie == envelope.Transfer || m.Tie == envelope.Assist):
			m.Tie = envelope.Fork
		}
		t.said = append(t.said, m)
	}
	if t.answer == nil {
		t.hold = waitsFor(t.said, about)
	}
	if t.answer == nil && t.hold == "" {
		return turn{}, errNoTurn
	}
	return t, nil
}

// finalOf is the index of the answer among messages; -1 for none. What is handed to
// the overseer is marked as such.
func finalOf(said []envelope.Message, about envelope.Task, overseer string) int {
	final := -1
	for i := range said {
		m := &said[i]
		if m.Act == envelope.Delegates && overseer != "" && slices.Equal(m.To, []string{overseer}) {
			m.Tie = envelope.Oversee // CAP-24
		}
		submitted := final >= 0 && said[final].Tie == envelope.Oversee
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

// waitsFor is what a task waits for whose agent gave no answer.
func waitsFor(said []envelope.Message, about envelope.Task) task.Reason {
	waits := task.Reason("")
	for _, m := range said {
		switch {
		case m.Act == envelope.Delegates && (m.Tie == envelope.Transfer || m.Tie == envelope.Assist):
			return task.Children
		case m.Act == envelope.Asks || m.Act == envelope.Inquires || m.WantsReply,
			m.Act == envelope.Informs && slices.ContainsFunc(m.To, func(to string) bool { return to != about.Requester }):
			waits = task.Reply
		}
	}
	return waits
}

// reason says in words what a task waits for.
func (t turn) reason() string {
	var names []string
	for _, m := range t.said {
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
