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

// Table lists tasks with what they wait for, or how far they are.
func (s WaitContext) Table(tasks []client.Task) *term.Table {
	list := &term.Table{Head: []string{"TASK", "STATE", "AGENT", "AGE", "DETAIL"}, Weights: []int{5, 2, 2, 0, 3}}
	described := s.Described || slices.ContainsFunc(tasks, func(t client.Task) bool { return subjectOf(t) != "" })
	if described {
		list.Head, list.Weights = append(list.Head, "DESCRIPTION"), append(list.Weights, 3)
	}
	for _, t := range tasks {
		row := []term.Cell{
			{Text: term.OneLine(string(s.nameOf(t)))},
			{Text: term.OneLine(StateOf(t)), Paint: PaintOf(t)},
			{Text: term.OneLine(t.Agent)},
			{Text: term.Age(s.Now.Sub(t.Received))},
			{Text: cmp.Or(term.Cut(s.Doing[t.ID], maxText), term.OneLine(s.Wait(t)))},
		}
		if described {
			row = append(row, term.Cell{Text: subjectOf(t)})
		}
		list.Add(row...)
	}
	return list
}

// maxText limits the columns of a description, and of what an agent wrote, in a list.
const maxText = 200

// Subject is the priority and the labels of a task, as [priority 5, area=auth], and its
// description.
func Subject(t client.Task) string { return subjectOf(t) }

// nameOf is the id of a task, or its short id.
func (s WaitContext) nameOf(t client.Task) envelope.ID {
	if s.ShortIDs && t.ShortID != "" {
		return t.ShortID
	}
	return t.ID
}

// subjectOf is the priority and the labels of a task, as [priority 5, area=auth], and its
// description. The priority of a finished task doesn't matter.
func subjectOf(t client.Task) string {
	words := term.OneLine(t.Description)
	var marks []string
	if t.Priority != 0 && t.State != task.Done {
		marks = append(marks, fmt.Sprintf("priority %d", t.Priority))
	}
	if len(t.Labels) > 0 {
		marks = append(marks, labelWords(t.Labels))
	}
	if len(marks) > 0 {
		words = strings.TrimSpace("[" + strings.Join(marks, ", ") + "] " + words)
	}
	return term.Cut(words, maxText)
}

// StateOf is the state of a task, or the status of its result.
func StateOf(t client.Task) string {
	switch {
	case t.State != task.Done:
		return string(t.State)
	case t.Kind != "":
		return term.Escape(string(t.Status) + " (" + string(t.Kind) + ")")
	}
	return term.Escape(string(t.Status))
}

// StateWithReasons is the state of a task with the reasons of a hold.
func StateWithReasons(t client.Task) string {
	if len(t.Held) == 0 {
		return StateOf(t)
	}
	reasons := make([]string, len(t.Held))
	for i, r := range t.Held {
		reasons[i] = string(r)
	}
	return string(t.State) + " (" + strings.Join(reasons, ", ") + ")"
}

// OpenStates returns the states of tasks without a result.
func OpenStates() []task.State {
	states := task.States()
	return states[:len(states)-1] // Done is the last
}

// PaintOf is the colour of a task by its state and status.
func PaintOf(t client.Task) term.Paint {
	switch t.State {
	case task.Running:
		return term.Cyan
	case task.Held, task.Review:
		return term.Yellow
	case task.Done:
		return paintOfStatus(t.Status)
	}
	return ""
}

// paintOfStatus is the colour of the status of a result.
func paintOfStatus(status envelope.Status) term.Paint {
	switch status {
	case envelope.OK:
		return term.Green
	case envelope.Partial:
		return term.Yellow
	}
	return term.Red
}

// Feed prints a line for each task.
func (s WaitContext) Feed(tasks []client.Task, w term.Screen) error {
	for _, t := range tasks {
		_, err := fmt.Fprintln(w, strings.TrimSpace(strings.Join([]string{
			s.Now.Local().Format(time.TimeOnly), term.OneLine(string(t.ID)), term.OneLine(StateOf(t)), term.OneLine(t.Agent), term.OneLine(s.Wait(t)),
		}, "  ")))
		if err != nil {
			return err
		}
	}
	return nil
}
