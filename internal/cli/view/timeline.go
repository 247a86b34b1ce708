package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/decisions/task"
)

// A Timeline prints a conversation.
type Timeline struct{ client.Dialogue }

// A moment is one line of a timeline.
type moment struct {
	at time.Time
	term.Paint
	words string
}

// mostQuoted is how many columns of a text are quoted.
const mostQuoted = 100

// Print prints a line for each message and event, with the date where it changes.
func (l Timeline) Print(s term.Screen) error {
	moments := l.moments()
	fmt.Fprintln(s, s.Paint(term.Bold, term.Cut(l.heading(moments), s.Columns)))
	day := ""
	for i, m := range moments {
		if today := m.at.Local().Format(time.DateOnly); today != day {
			if i > 0 {
				fmt.Fprintln(s, s.Paint(term.Faint, term.Cut(today, s.Columns)))
			}
			day = today
		}
		clock := m.at.Local().Format(time.TimeOnly) + "  "
		room := s.Columns
		if room > 0 {
			room = max(1, room-len(clock))
		}
		if _, err := fmt.Fprintln(s, clock+s.Paint(m.Paint, term.Cut(m.words, room))); err != nil {
			return err
		}
	}
	return nil
}

// heading counts the messages and tasks.
func (l Timeline) heading(moments []moment) string {
	said := 0
	for _, m := range l.Messages {
		if m.Via != string(task.ByDaemon) {
			said++
		}
	}
	words := fmt.Sprintf("%s · %s, %s", term.OneLine(l.ID), count(said, "message"), count(len(l.Tasks), "task"))
	if len(moments) > 0 {
		words += ", " + term.Age(moments[len(moments)-1].at.Sub(moments[0].at))
		words += " from " + term.Stamp(moments[0].at)
	}
	return words
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// moments returns messages, events and ends of tasks in the order of time. Messages come
// before events of the same time.
func (l Timeline) moments() (all []moment) {
	for _, m := range l.Messages {
		if words := l.describeMessage(m); words != "" {
			all = append(all, moment{m.Time, "", words})
		}
	}
	for i, e := range l.Events {
		if words := l.describeEvent(e, l.Events[i+1:]); words != "" {
			all = append(all, moment{e.Time, term.Faint, words})
		}
	}
	for _, p := range l.Tasks {
		if p.Task.State == task.Done {
			all = append(all, moment{p.Task.Finished, PaintOf(p.Task), endOf(p)})
		}
	}
	slices.SortStableFunc(all, func(a, b moment) int { return a.at.Compare(b.at) })
	return all
}

// MessageWords describes what a message does, without its text; "" for a message of the daemon
// that repeats an event.
func (l Timeline) MessageWords(m client.Message) string {
	m.Text = ""
	return l.describeMessage(m)
}

// describeMessage describes a message; "" for a message of the daemon that repeats an
// event.
func (l Timeline) describeMessage(m client.Message) string {
	act := envelope.Act(m.Act)
	ours := m.Via == string(task.ByDaemon)
	if ours && m.Task != "" && slices.Contains(inEvents, act) || ours && m.From != envelope.Mailboxd && slices.Contains(forwarded, act) {
		return ""
	}
	from, to := term.OneLine(m.From), term.OneLine(cmp.Or(m.To, "nobody"))
	task, _ := l.part(m.Task)
	words := l.describeAct(act, m, from, to, task)
	if m.Text != "" {
		words += ": " + quoted(m.Text)
	}
	return words
}

// inEvents are the acts of the daemon that events describe too.
var inEvents = []envelope.Act{envelope.Accepts, envelope.Reports, envelope.Waits, envelope.Completes, envelope.Fails}

// forwarded are the acts that the daemon only forwards, or sends for an agent.
var forwarded = []envelope.Act{envelope.Informs, envelope.Asks, envelope.ReportsStatus, envelope.Inquires, envelope.Announces}

// describeAct describes what a message does.
func (l Timeline) describeAct(act envelope.Act, m client.Message, from, to string, task client.Part) string {
	about := ""
	if m.Task != "" {
		about = " about " + term.OneLine(string(m.Task))
	}
	name := term.OneLine(cmp.Or(string(m.Task), "something"))
	overseen := envelope.Tie(task.Tie) == envelope.Oversee && m.From == task.Task.Agent
	switch act {
	case envelope.Requests:
		return fmt.Sprintf("%s asks %s to do %s", from, to, name)
	case envelope.Delegates:
		return describeDelegation(from, to, name, task)
	case envelope.Inquires:
		if overseen {
			name = term.OneLine(string(task.Parent))
		}
		return fmt.Sprintf("%s sends %s back to %s", from, name, to)
	case envelope.Completes, envelope.Informs:
		switch {
		case overseen && to != term.OneLine(task.Task.Requester):
			return fmt.Sprintf("%s approves %s", from, term.OneLine(string(task.Parent)))
		case act == envelope.Completes:
			return fmt.Sprintf("%s answers %s%s", from, to, about)
		case m.Waits || strings.HasSuffix(strings.TrimSpace(m.Text), "?"):
			return fmt.Sprintf("%s asks %s%s", from, to, about)
		}
		return fmt.Sprintf("%s tells %s%s", from, to, about)
	case envelope.Fails:
		if overseen {
			return fmt.Sprintf("%s does not approve %s", from, term.OneLine(string(task.Parent)))
		}
		return fmt.Sprintf("%s tells %s that it failed%s", from, to, about)
	case envelope.Asks:
		if m.Text != "" || m.From == task.Task.Agent { // who does it knows how far it is
			return fmt.Sprintf("%s asks %s%s", from, to, about)
		}
		return fmt.Sprintf("%s asks %s how far %s is", from, to, name)
	case envelope.ReportsStatus:
		return fmt.Sprintf("%s tells %s how far %s is", from, to, name)
	case envelope.Cancels:
		return fmt.Sprintf("%s tells %s to stop %s", from, to, name)
	case envelope.Stops:
		return fmt.Sprintf("%s tells %s that %s is stopped", from, to, name)
	case envelope.Accepts:
		return fmt.Sprintf("%s tells %s that it has %s", from, to, name)
	case envelope.Reports, envelope.Waits:
		return fmt.Sprintf("%s reports to %s%s", from, to, about)
	case envelope.Announces, envelope.Updates:
		return fmt.Sprintf("%s says what it can do", from)
	}
	if verb := clutchVerbs[act]; verb != "" {
		return fmt.Sprintf("%s %s%s", from, verb, about)
	}
	return fmt.Sprintf("%s says %s to %s%s", from, term.OneLine(m.Act), to, about)
}

// clutchVerbs describe the acts that only Clutch has.
var clutchVerbs = map[envelope.Act]string{
	envelope.SendsHeartbeat: "says that it is there", envelope.Calls: "calls a tool", envelope.Returns: "hands over the result of a tool",
	envelope.FailsTool: "says that a tool failed", envelope.Routes: "has chosen an agent", envelope.FailsToRoute: "has found no agent",
}

// describeDelegation describes a delegation by the tie of the new task.
func describeDelegation(from, to, name string, task client.Part) string {
	switch envelope.Tie(task.Tie) {
	case envelope.Transfer:
		return fmt.Sprintf("%s leaves %s to %s", from, name, to)
	case envelope.Fork:
		return fmt.Sprintf("%s has %s do %s beside its own work", from, to, name)
	case envelope.Oversee:
		return fmt.Sprintf("%s asks %s to approve %s, as %s", from, to, term.OneLine(string(task.Parent)), name)
	}
	return fmt.Sprintf("%s hands %s to %s", from, name, to)
}

// part returns a task of the conversation.
func (l Timeline) part(id envelope.ID) (client.Part, bool) {
	for _, p := range l.Tasks {
		if p.Task.ID == id {
			return p, true
		}
	}
	return client.Part{}, false
}

// quoted quotes a text on one line, cut to mostQuoted.
func quoted(text string) string { return `"` + term.Cut(term.OneLine(text), mostQuoted) + `"` }
