package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/client"
	"mailboxd/internal/task"
	"mailboxd/internal/term"
)

// A caseFile is all that is known of one task, to be told to a person.
type caseFile struct{ client.CaseFile }

// tell shows a task to a person: first why it is where it is and what to do
// about that, then what is known of it, what happened, and where its files are.
func (d *desk) tell(ctx context.Context, f *caseFile, s term.Screen, now time.Time) error {
	around, err := d.around(ctx, []client.Task{f.Task}, now)
	if err != nil {
		return err
	}
	f.answer(s, around)
	fmt.Fprintln(s)
	f.facts(s, now)
	printApproval(s, f.Asked)
	fmt.Fprintln(s, "\nwhat happened")
	if err := f.story().Print(s); err != nil {
		return err
	}
	if told := f.told(); told != nil {
		fmt.Fprintln(s, "\nwhat was said")
		if err := told.Print(s); err != nil {
			return err
		}
	}
	if len(f.Runs) > 0 {
		fmt.Fprintln(s, "\nruns")
		for _, r := range f.Runs {
			fmt.Fprintf(s, "  %s\n", f.outcome(r, now))
		}
	}
	if files := d.files(f); len(files) > 0 {
		fmt.Fprintln(s, "\nfiles")
		for _, file := range files {
			fmt.Fprintf(s, "  %s\n", term.Escape(file)) // never cut: it is there to be copied
		}
	}
	if f.Unshown != nil {
		fmt.Fprintln(s, "\nanswer, which its requester was not shown")
		if err := printResult(s, f.Unshown, false); err != nil {
			return err
		}
	}
	if f.Result == nil {
		return nil
	}
	fmt.Fprintln(s, "\nresult")
	return printResult(s, f.Result, false)
}

// answer says why the task is where it is, and what can be done.
func (f *caseFile) answer(s term.Screen, around surroundings) {
	t := f.Task
	fmt.Fprintf(s, "%s  %s\n", s.Paint(term.Bold, term.OneLine(string(t.ID))), s.Paint(colourOf(t), whereabouts(t)))
	if wait := around.wait(t); wait != "" {
		fmt.Fprintf(s, "  waits for  %s\n", wait)
	}
	if why := f.reason(); why != "" {
		fmt.Fprintf(s, "  because    %s\n", why)
	}
	if next := around.next(t); next != "" {
		fmt.Fprintf(s, "  next       %s\n", next)
	}
}

// reason is why its callback failed, or else what the task's result or its last event
// says went wrong.
func (f *caseFile) reason() string {
	if f.Task.CallbackFailed {
		return f.callbackError()
	}
	if f.Result != nil && f.Task.State == task.Done {
		r, findings := envelope.DecodeResult(f.Result)
		if !findings.Refused() && r.Error.Message != "" {
			return term.OneLine(r.Error.Message)
		}
	}
	for _, e := range slices.Backward(f.Story) {
		if told := dataOf(e.Data); told["message"] != nil && e.Revision == f.Task.Revision {
			return term.OneLine(fmt.Sprint(told["message"]))
		}
	}
	return ""
}

// callbackError is with which error the callback failed that the task lacks.
func (f *caseFile) callbackError() string {
	for _, e := range slices.Backward(f.Story) {
		if e.Revision == f.Task.Revision && (e.Kind == task.KindCallbackFailed || e.Kind == task.KindCallbackAbandoned) {
			return term.OneLine(fmt.Sprint(dataOf(e.Data)["reason"]))
		}
	}
	return ""
}

// facts are what the request says, and where it came from.
func (f *caseFile) facts(s term.Screen, now time.Time) {
	t := f.Task
	s.Line("  agent      %s", term.OneLine(t.Agent))
	s.Line("  requester  %s", term.OneLine(t.Requester))
	s.Line("  type       %s", term.OneLine(t.Type))
	f.talks(s)
	if f.Parent != "" {
		s.Line("  is for     %s", term.OneLine(string(f.Parent)))
	}
	for _, child := range f.Below {
		s.Line("  asked for  %s", term.OneLine(string(child)))
	}
	received := term.Stamp(t.Received)
	if t.File != "" {
		received += " from " + term.OneLine(t.File)
	}
	if t.Revision > 1 {
		received += fmt.Sprintf(", revision %d", t.Revision)
	}
	s.Line("  received   %s", received)
	if !t.Deadline.IsZero() {
		s.Line("  deadline   %s%s", term.Stamp(t.Deadline), away(t.Deadline.Sub(now)))
	}
	if task, ok := f.task(); ok && task.Description != "" {
		s.Line("  asks for   %s", term.OneLine(task.Description))
	}
}

// away says how far off an instant is, unless it is beyond all planning.
func away(d time.Duration) string {
	switch {
	case d <= 0:
		return ", past"
	case d < 10*365*24*time.Hour:
		return ", in " + term.Age(d)
	}
	return ""
}

// story is what happened, in order.
func (f *caseFile) story() *term.Table {
	story := &term.Table{Weights: []int{0, 1, 2}}
	for _, e := range f.Story {
		story.Add(term.Cell{Text: "  " + term.Stamp(e.Time), Paint: term.Faint}, term.Cell{Text: term.OneLine(string(e.Kind))}, term.Cell{Text: retell(e)})
	}
	return story
}

// task is the request, if it is kept and can be read.
func (f *caseFile) task() (envelope.Task, bool) {
	if f.Request == nil {
		return envelope.Task{}, false
	}
	t, findings := dialect.DecodeTask(envelope.Dialect(f.Task.Dialect), f.Request, envelope.Legacy)
	return t, !findings.Refused()
}

// asked is what a person is asked now, or nothing.
func (f *caseFile) asked() client.Approval {
	if len(f.Asked) > 0 && f.Asked[len(f.Asked)-1].Decision == "" {
		return f.Asked[len(f.Asked)-1]
	}
	return client.Approval{}
}

// began is when the task was last handed to its agent, or its inbox; zero when it was not. The
// ledger knows when a process started only once it has ended.
func (f *caseFile) began() time.Time {
	for _, e := range slices.Backward(f.Story) {
		if (e.Kind == task.KindTaskStarted || e.Kind == task.KindTaskWaiting) && e.Revision == f.Task.Revision {
			return e.Time
		}
	}
	return time.Time{}
}

// outcome says how a run went.
func (f *caseFile) outcome(r client.Run, now time.Time) string {
	words := fmt.Sprintf("%d  ", r.Attempt)
	switch {
	case r.Finished.IsZero() && f.Task.State == task.Waiting && r.Attempt == f.Task.Attempt:
		words += "waits for " + term.Age(now.Sub(f.began()))
	case r.Finished.IsZero() && f.Task.State == task.Running && r.Attempt == f.Task.Attempt:
		words += "at work for " + term.Age(now.Sub(f.began()))
	case r.Finished.IsZero():
		words += "did not begin"
	case r.Started.IsZero():
		words += "was not started"
	default:
		how := cmp.Or(r.Signal, fmt.Sprintf("exit %d", r.ExitCode))
		switch r.Cause {
		case "":
		case task.CausePutBack:
			how += ", without having done anything"
		case task.CauseNoAnswer:
			how += ", without an answer yet"
		default:
			how += ", ended by us: " + string(r.Cause)
		}
		words += fmt.Sprintf("%s after %s", how, r.Finished.Sub(r.Started).Round(time.Millisecond))
	}
	if r.PID > 0 && r.Finished.IsZero() {
		words += fmt.Sprintf(", process %d", r.PID)
	}
	return words
}

// files are the places a person may want to look at, as far as they are there.
func (d *desk) files(f *caseFile) []string {
	var all []string
	for _, r := range f.Runs {
		all = append(all, r.Dir)
	}
	for _, t := range f.Earlier {
		all = append(all, d.state.HistoryPath(t.ID, t.Revision))
	}
	all = append(all, filepath.Join(d.root, "results", string(f.Task.ID)+".json"))
	return slices.DeleteFunc(all, func(path string) bool {
		_, err := os.Lstat(path)
		return err != nil
	})
}
