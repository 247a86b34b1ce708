// Package view has what commands print for people: tables of tasks and agents, the
// details of a task, conversations as timelines, and what tasks wait for.
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

// A WaitContext has what the words about a wait need besides the task itself.
type WaitContext struct {
	Now    time.Time
	Served bool                            // a daemon answers
	Paused []string                        // agents that may start nothing; "" is every agent
	Ahead  map[envelope.ID]int             // how many are before a queued task at its agent, up to MaxAhead
	Began  map[envelope.ID]time.Time       // when the agent of a running task started, or one was delivered
	Asked  map[envelope.ID]client.Approval // what a person is asked about a task
	Doing  map[envelope.ID]string          // how far a running task is, escaped
	Quoted map[envelope.ID]string          // what the last run of a held task said about the hold, escaped

	ShortIDs  bool // print short ids
	Described bool // print a column of descriptions, even an empty one
}

// MayBePaused reports whether a pause can keep a task from starting.
func MayBePaused(t client.Task) bool {
	return t.State == task.Queued || task.EndedBy(t.Held, task.Resume)
}

// HasState reports whether a task is in a state.
func HasState(tasks []client.Task, state task.State) bool {
	return slices.ContainsFunc(tasks, func(t client.Task) bool { return t.State == state })
}

// WaitsForApproval reports whether a task waits for the approval of a person.
func WaitsForApproval(t client.Task) bool {
	return t.State == task.Review || task.EndedBy(t.Held, task.Decide)
}

// Quotes reports whether what a task waits for is said in the words of its last run.
func Quotes(t client.Task) bool {
	return t.State == task.Held && slices.ContainsFunc(t.Held, func(r task.Reason) bool { return r.Facts().Quotes })
}

// NeedsPerson reports whether nothing but a person ends the wait of a task.
func (s WaitContext) NeedsPerson(t client.Task) bool {
	if t.State == task.Review {
		asked, known := s.Asked[t.ID]
		return !known || !asked.Asked.IsZero() // otherwise an overseer is asked
	}
	return slices.ContainsFunc(t.Held, func(r task.Reason) bool { return r.Facts().NeedsPerson })
}

// Wait says what a task waits for, or "".
func (s WaitContext) Wait(t client.Task) string {
	switch t.State {
	case task.Received:
		return "the end of its earlier revision"
	case task.Queued:
		return s.queued(t)
	case task.Running:
		if WaitsForApproval(t) {
			return s.approval(t) + " of a call"
		}
		if began := s.Began[t.ID]; !began.IsZero() {
			return "its agent, at work for " + term.Age(s.Now.Sub(began))
		}
		return "its agent"
	case task.Waiting:
		return s.fetched(t)
	case task.Review:
		if asked, known := s.Asked[t.ID]; known && asked.Asked.IsZero() {
			return "an overseer's approval" + s.until(t, " until ")
		}
		return s.approval(t)
	case task.Held:
		words := make([]string, len(t.Held))
		for i, r := range t.Held {
			words[i] = s.hold(t, r)
		}
		return strings.Join(words, "; ")
	}
	if t.CallbackFailed {
		return "its callback, which failed"
	}
	return ""
}

// fetched says what a task in an inbox waits for, and since when.
func (s WaitContext) fetched(t client.Task) string {
	since := ""
	if began := s.Began[t.ID]; !began.IsZero() {
		since = ", since " + clock(began, s.Now)
	}
	if !t.Until.IsZero() {
		return term.OneLine(t.Agent) + ", claimed until " + clock(t.Until, s.Now) + since
	}
	return term.OneLine(t.Agent) + " to fetch it" + since
}

func (s WaitContext) queued(t client.Task) string {
	switch n := s.Ahead[t.ID]; {
	case !s.Served:
		return "mailboxd serve, which is not running"
	case slices.Contains(s.Paused, "") || slices.Contains(s.Paused, t.Agent):
		return "resume: its agent is paused"
	case n == MaxAhead:
		return fmt.Sprintf("%d or more before it in the queue", MaxAhead)
	case n > 0:
		return fmt.Sprintf("%d before it in the queue", n)
	}
	return "a free slot"
}

// hold says what a held task waits for, for one reason.
func (s WaitContext) hold(t client.Task, r task.Reason) string {
	f := r.Facts()
	switch {
	case f.Action == task.Decide:
		return s.approval(t)
	case r.EndsWithBudget(t.Until, t.Deadline):
		return "what other runs leave of its budget" // which has no time
	case f.Quotes && s.Quoted[t.ID] != "":
		return f.Needs + s.until(t, f.Until) + ": " + term.Cut(s.Quoted[t.ID], maxText)
	case f.Until != "":
		return f.Needs + s.until(t, f.Until)
	}
	return cmp.Or(f.Needs, string(r))
}

func (s WaitContext) approval(t client.Task) string {
	asked, words := s.Asked[t.ID], "approval"
	if asked.Approver != "" {
		words += " of " + term.OneLine(asked.Approver)
	}
	if asked.Own == task.SelfRefuse.String() {
		words += " of another approver"
	}
	if !asked.Expires.IsZero() {
		words += " until " + clock(asked.Expires, s.Now)
	}
	return words
}

func (s WaitContext) until(t client.Task, preposition string) string {
	if t.Until.IsZero() {
		return ""
	}
	return preposition + clock(t.Until, s.Now)
}

// clock formats a time, with the day unless it is today.
func clock(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	switch {
	case t.Format(time.DateOnly) == now.Format(time.DateOnly):
		return t.Format("15:04")
	case t.Year() == now.Year():
		return t.Format("2 Jan 15:04")
	}
	return t.Format("2 Jan 2006 15:04")
}

// Next returns the command that lets a task go on, or what a person can do; "" for nothing.
func (s WaitContext) Next(t client.Task) string { return s.next(t) }

// next returns the command that lets a task go on, or "".
func (s WaitContext) next(t client.Task) string {
	asked, known := s.Asked[t.ID]
	name, ends := s.nameOf(t), s.endsHold(t)
	switch {
	case t.State == task.Review && known && asked.Asked.IsZero():
		return Command("thread", name)
	case WaitsForApproval(t) && asked.Own == task.SelfRefuse.String():
		return "another approver must decide, since you requested this task (approval.self is refuse); or " + Command("cancel", name)
	case WaitsForApproval(t) && asked.Own == task.SelfConfirm.String():
		return "you requested this task: confirm at a terminal with " + Command("approve", name) + ", or " + Command("deny", name, "--reason WHY")
	case WaitsForApproval(t):
		return Command("approve", name) + ", or " + Command("deny", name, "--reason WHY")
	case ends != "":
		return ends
	case MayBePaused(t) && slices.Contains(s.Paused, ""):
		return "mailboxd resume"
	case MayBePaused(t) && slices.Contains(s.Paused, t.Agent):
		return "mailboxd resume " + term.OneLine(term.ShellWord(t.Agent))
	case t.State == task.Queued && !s.Served:
		return "mailboxd serve"
	case t.State == task.Running:
		return Command("logs", name, "-f")
	case t.State == task.Done && t.Kind == envelope.BudgetExceeded:
		return "send it again with a larger budget; what is left: mailboxd budget" // a retry would have the same one
	case t.State == task.Done && t.Status != envelope.OK && t.Status != envelope.Partial:
		if t.Attempt > 0 {
			return Command("logs", name) + ", or " + Command("retry", name)
		}
		return Command("retry", name)
	}
	return ""
}

// endsHold says what a person can do about the most pressing reason of a hold, or "".
func (s WaitContext) endsHold(t client.Task) string {
	for _, f := range task.FactsOf(t.Held) {
		if f.Next == "" {
			continue
		}
		name := s.nameOf(t)
		return strings.NewReplacer(
			"{agent}", term.OneLine(t.Agent), "{result}", term.ShellWord("results/"+string(t.ID)+".json"),
			"{release}", Command("release", name), "{reply}", Command("reply", name, "TEXT"),
			"{thread}", Command("thread", name), "{explain}", Command("route explain", name),
		).Replace(f.Next)
	}
	return ""
}

// MaxAhead limits how many queued tasks of an agent are read. Queues can be long, and
// waiting commands read them again and again.
const MaxAhead = 1000
