package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/client"
	"mailboxd/internal/task"
	"mailboxd/internal/term"
)

// surroundings are what a task's wait depends on besides the task itself.
type surroundings struct {
	now    time.Time
	served bool                            // a daemon answers
	paused []string                        // agents that may start nothing; "" is every agent
	ahead  map[envelope.ID]int             // how many are before a queued task at its agent, up to manyAhead
	began  map[envelope.ID]time.Time       // when the agent of a running task started, or one was delivered
	asked  map[envelope.ID]client.Approval // what a person is asked about a task
}

// around looks at what the waits of some tasks depend on.
func (d *desk) around(ctx context.Context, tasks []client.Task, now time.Time) (surroundings, error) {
	s := surroundings{now: now, served: d.served, began: map[envelope.ID]time.Time{}, asked: map[envelope.ID]client.Approval{}}
	var err error
	if hasState(tasks, task.Queued) {
		if s.ahead, err = d.queue(ctx, tasks); err != nil {
			return s, err
		}
	}
	if slices.ContainsFunc(tasks, mayBePaused) {
		if s.paused, err = d.paused(ctx); err != nil {
			return s, err
		}
	}
	for _, t := range tasks {
		if len(s.began)+len(s.asked) == manyDetails {
			break
		}
		if err := d.lookInto(ctx, t, s); err != nil {
			return s, err
		}
	}
	return s, nil
}

// manyDetails is how many tasks are looked into for one list.
const manyDetails = 200

// lookInto adds what only a task's file tells of its wait.
func (d *desk) lookInto(ctx context.Context, t client.Task, s surroundings) error {
	running := t.State == task.Running || t.State == task.Waiting
	if !running && !waitsForApproval(t) {
		return nil
	}
	found, err := d.file(ctx, t.ID)
	if err != nil {
		return err
	}
	file := &caseFile{found}
	if running {
		s.began[t.ID] = file.began()
	} else {
		s.asked[t.ID] = file.asked()
	}
	return nil
}

func mayBePaused(t client.Task) bool {
	return t.State == task.Queued || slices.Contains(t.Held, task.Paused)
}

func hasState(tasks []client.Task, state task.State) bool {
	return slices.ContainsFunc(tasks, func(t client.Task) bool { return t.State == state })
}

func waitsForApproval(t client.Task) bool {
	return t.State == task.Review || slices.Contains(t.Held, task.Approval)
}

// manyAhead is how far into the queue of an agent one looks. A queue may be very
// long, and whoever waits looks at it again and again.
const manyAhead = 1000

// queue returns how many queued tasks are before each of some at its agent, for
// an agent takes the oldest first; manyAhead for that or more.
func (d *desk) queue(ctx context.Context, tasks []client.Task) (map[envelope.ID]int, error) {
	ahead, long := map[envelope.ID]int{}, map[string]bool{}
	for _, t := range tasks {
		if t.State != task.Queued {
			continue
		}
		if _, done := long[t.Agent]; !done {
			first, err := d.tasks(ctx, client.Filter{States: []task.State{task.Queued}, Agent: t.Agent, Limit: manyAhead})
			if err != nil {
				return nil, err
			}
			for n, before := range first {
				ahead[before.ID] = n
			}
			long[t.Agent] = len(first) == manyAhead
		}
		if _, near := ahead[t.ID]; !near && long[t.Agent] {
			ahead[t.ID] = manyAhead
		}
	}
	return ahead, nil
}

// wait says what a task waits for, in a few words; "" for nothing.
func (s surroundings) wait(t client.Task) string {
	switch t.State {
	case task.Received:
		return "the end of its earlier revision"
	case task.Queued:
		return s.queued(t)
	case task.Running:
		if began := s.began[t.ID]; !began.IsZero() {
			return "its agent, at work for " + term.Age(s.now.Sub(began))
		}
		return "its agent"
	case task.Waiting:
		return s.fetched(t)
	case task.Review:
		if asked, known := s.asked[t.ID]; known && asked.Asked.IsZero() {
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

// fetched says whom a task waits for that is in an inbox, and since when.
func (s surroundings) fetched(t client.Task) string {
	since := ""
	if began := s.began[t.ID]; !began.IsZero() {
		since = ", since " + clock(began, s.now)
	}
	if !t.Until.IsZero() {
		return term.OneLine(t.Agent) + ", claimed until " + clock(t.Until, s.now) + since
	}
	return term.OneLine(t.Agent) + " to fetch it" + since
}

func (s surroundings) queued(t client.Task) string {
	switch n := s.ahead[t.ID]; {
	case !s.served:
		return "mailboxd serve, which is not running"
	case slices.Contains(s.paused, "") || slices.Contains(s.paused, t.Agent):
		return "resume: its agent is paused"
	case n == manyAhead:
		return fmt.Sprintf("%d or more before it in the queue", manyAhead)
	case n > 0:
		return fmt.Sprintf("%d before it in the queue", n)
	}
	return "a free slot"
}

// hold says what one reason to hold a task waits for.
func (s surroundings) hold(t client.Task, r task.Reason) string {
	switch r {
	case task.Approval:
		return s.approval(t)
	case task.ChangeWindow:
		return r.Needs() + s.until(t, "s ")
	case task.Capacity:
		if t.Until.Equal(t.Deadline) {
			return "what other runs leave of its budget" // which has no time
		}
		return r.Needs() + s.until(t, " at ")
	case task.Reply:
		return r.Needs() + s.until(t, " until ")
	}
	return cmp.Or(r.Needs(), string(r))
}

func (s surroundings) approval(t client.Task) string {
	asked, words := s.asked[t.ID], task.Approval.Needs()
	if asked.Approver != "" {
		words += " of " + term.OneLine(asked.Approver)
	}
	if !asked.Expires.IsZero() {
		words += " until " + clock(asked.Expires, s.now)
	}
	return words
}

func (s surroundings) until(t client.Task, preposition string) string {
	if t.Until.IsZero() {
		return ""
	}
	return preposition + clock(t.Until, s.now)
}

// clock shows an instant as one would say it: the day only when it is another.
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

// next returns the command that would bring a task on, or "".
func (s surroundings) next(t client.Task) string {
	asked, known := s.asked[t.ID]
	switch {
	case t.State == task.Review && known && asked.Asked.IsZero():
		return advise("thread", t.ID)
	case waitsForApproval(t):
		return advise("approve", t.ID) + ", or " + advise("deny", t.ID, "--reason WHY")
	case slices.Contains(t.Held, task.AuthRequired):
		return "log in to what " + term.OneLine(t.Agent) + " runs, then " + advise("release", t.ID)
	case slices.Contains(t.Held, task.Operator), slices.Contains(t.Held, task.AnswerUnread), slices.Contains(t.Held, task.Recovered):
		return advise("release", t.ID)
	case slices.Contains(t.Held, task.ResultInvalid):
		return "mend or remove " + term.ShellWord("results/"+string(t.ID)+".json")
	case slices.Contains(t.Held, task.Reply):
		return advise("reply", t.ID, "TEXT") + ", or see what it asked: " + advise("thread", t.ID)
	case slices.Contains(t.Held, task.Children):
		return advise("thread", t.ID)
	case mayBePaused(t) && slices.Contains(s.paused, ""):
		return "mailboxd resume"
	case mayBePaused(t) && slices.Contains(s.paused, t.Agent):
		return "mailboxd resume " + term.OneLine(term.ShellWord(t.Agent))
	case t.State == task.Queued && !s.served:
		return "mailboxd serve"
	case t.State == task.Running:
		return advise("logs", t.ID, "-f")
	case t.CallbackFailed:
		return "remove what is in the way of its callback, then " + advise("release", t.ID)
	case t.State == task.Done && t.Status != envelope.OK && t.Status != envelope.Partial:
		if t.Attempt > 0 {
			return advise("logs", t.ID) + ", or " + advise("retry", t.ID)
		}
		return advise("retry", t.ID)
	}
	return ""
}
