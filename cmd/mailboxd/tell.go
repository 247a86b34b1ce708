package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/client"
	"mailboxd/internal/task"
)

// A caseFile is all that is known of one task, to be told to a person.
type caseFile struct{ client.CaseFile }

// tell shows a task to a person: first why it is where it is and what to do
// about that, then what is known of it, what happened, and where its files are.
func (d *desk) tell(ctx context.Context, f *caseFile, s screen, now time.Time) error {
	around, err := d.around(ctx, []client.Task{f.Task}, now)
	if err != nil {
		return err
	}
	f.answer(s, around)
	fmt.Fprintln(s)
	f.facts(s, now)
	printApproval(s, f.Asked)
	fmt.Fprintln(s, "\nwhat happened")
	if err := f.story().print(s); err != nil {
		return err
	}
	if told := f.told(); told != nil {
		fmt.Fprintln(s, "\nwhat was said")
		if err := told.print(s); err != nil {
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
			fmt.Fprintf(s, "  %s\n", plain(file)) // never cut: it is there to be copied
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
func (f *caseFile) answer(s screen, around surroundings) {
	t := f.Task
	fmt.Fprintf(s, "%s  %s\n", s.paint(bold, flat(string(t.ID))), s.paint(colourOf(t), whereabouts(t)))
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
			return flat(r.Error.Message)
		}
	}
	for _, e := range slices.Backward(f.Story) {
		if told := dataOf(e.Data); told["message"] != nil && e.Revision == f.Task.Revision {
			return flat(fmt.Sprint(told["message"]))
		}
	}
	return ""
}

// callbackError is with which error the callback failed that the task lacks.
func (f *caseFile) callbackError() string {
	for _, e := range slices.Backward(f.Story) {
		if e.Revision == f.Task.Revision && (e.Kind == task.KindCallbackFailed || e.Kind == task.KindCallbackAbandoned) {
			return flat(fmt.Sprint(dataOf(e.Data)["reason"]))
		}
	}
	return ""
}

// facts are what the request says, and where it came from.
func (f *caseFile) facts(s screen, now time.Time) {
	t := f.Task
	s.line("  agent      %s", flat(t.Agent))
	s.line("  requester  %s", flat(t.Requester))
	s.line("  type       %s", flat(t.Type))
	f.talks(s)
	if f.Parent != "" {
		s.line("  is for     %s", flat(string(f.Parent)))
	}
	for _, child := range f.Below {
		s.line("  asked for  %s", flat(string(child)))
	}
	received := stamp(t.Received)
	if t.File != "" {
		received += " from " + flat(t.File)
	}
	if t.Revision > 1 {
		received += fmt.Sprintf(", revision %d", t.Revision)
	}
	s.line("  received   %s", received)
	if !t.Deadline.IsZero() {
		s.line("  deadline   %s%s", stamp(t.Deadline), away(t.Deadline.Sub(now)))
	}
	if task, ok := f.task(); ok && task.Description != "" {
		s.line("  asks for   %s", flat(task.Description))
	}
}

// away says how far off an instant is, unless it is beyond all planning.
func away(d time.Duration) string {
	switch {
	case d <= 0:
		return ", past"
	case d < 10*365*24*time.Hour:
		return ", in " + age(d)
	}
	return ""
}

// story is what happened, in order.
func (f *caseFile) story() *table {
	story := &table{weights: []int{0, 1, 2}}
	for _, e := range f.Story {
		story.add(cell{"  " + stamp(e.Time), faint}, cell{text: flat(string(e.Kind))}, cell{text: retell(e)})
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
		words += "waits for " + age(now.Sub(f.began()))
	case r.Finished.IsZero() && f.Task.State == task.Running && r.Attempt == f.Task.Attempt:
		words += "at work for " + age(now.Sub(f.began()))
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

func stamp(t time.Time) string { return t.Local().Format(time.DateTime) }

// indent moves text to the right.
func indent(s string) string { return "  " + strings.ReplaceAll(s, "\n", "\n  ") }
