package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"time"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/decisions/task"
)

// Details prints all that is known of a task.
type Details struct {
	client.TaskDetails
	Session, Continue string // of the agent's program in the last run, and the command that continues it; "" for none
	Chosen            string // the digest of the call to decide about; "" for the oldest
}

// Print prints the state of the task with the next command, then the request, the
// events, the messages, the runs, the files and the result.
func (f *Details) Print(s term.Screen, around WaitContext, files []string) error {
	now := around.Now
	f.printState(s, around)
	fmt.Fprintln(s)
	f.printRequest(s, now)
	f.printApproval(s)
	fmt.Fprintln(s, "\nwhat happened")
	if err := f.eventTable().Print(s); err != nil {
		return err
	}
	if table := f.messageTable(); table != nil {
		fmt.Fprintln(s, "\nwhat was said")
		if err := table.Print(s); err != nil {
			return err
		}
	}
	if len(f.Runs) > 0 {
		fmt.Fprintln(s, "\nruns")
		for _, r := range f.Runs {
			fmt.Fprintf(s, "  %s\n", f.outcome(r, now))
			printRefused(s, r.RefusedHosts)
		}
	}
	if f.Continue != "" {
		fmt.Fprintf(s, "  session %s; to continue it:\n    %s\n", f.Session, f.Continue) // never cut: it is there to be copied
	}
	f.printWorktree(s)
	if len(files) > 0 {
		fmt.Fprintln(s, "\nfiles")
		for _, file := range files {
			fmt.Fprintf(s, "  %s\n", term.Escape(file)) // never cut: it is there to be copied
		}
	}
	if f.Unshown != nil {
		fmt.Fprintln(s, "\nanswer, which its requester was not shown")
		if err := PrintResult(s, f.Unshown, false); err != nil {
			return err
		}
	}
	if f.Result == nil {
		return nil
	}
	fmt.Fprintln(s, "\nresult")
	return PrintResult(s, f.Result, false)
}

// printState prints the state, what the task waits for, and the next command.
func (f *Details) printState(s term.Screen, around WaitContext) {
	t := f.Task
	name := s.Paint(term.Bold, term.OneLine(string(t.ID)))
	if s.Columns > 0 && t.ShortID != "" {
		name = s.Paint(term.Bold, term.OneLine(string(t.ShortID))) + "  " + term.OneLine(string(t.ID))
	}
	fmt.Fprintf(s, "%s  %s\n", name, s.Paint(PaintOf(t), StateWithReasons(t)))
	around.Quoted = nil // "because" says it
	if wait := around.Wait(t); wait != "" {
		fmt.Fprintf(s, "  waits for  %s\n", hang(s, wait))
	}
	if why := f.reason(); why != "" {
		fmt.Fprintf(s, "  because    %s\n", hang(s, why))
	}
	if next := around.next(t); next != "" {
		fmt.Fprintf(s, "  next       %s\n", hang(s, next))
	}
	if t.CallbackFailed {
		why := f.callbackError()
		fmt.Fprintf(s, "  callback   %s\n  next       %s\n", hang(s, cmp.Or(why, "failed")), hang(s, afterCallback(t, why)))
	}
}

// hang wraps a text on a screen, behind a name such as "  because    ".
func hang(s term.Screen, text string) string {
	if s.Columns == 0 {
		return text
	}
	return term.WrapIndented(text, s.Columns, len("  because    "))
}

// printRefused prints the hosts that the gate of a run refused, a line for each; those that the
// program doesn't need share one line.
func printRefused(s term.Screen, hosts []client.RefusedHost) {
	var unneeded []string
	for _, host := range hosts {
		if host.For != "" {
			unneeded = append(unneeded, fmt.Sprintf("%s (%s)", host.Host, host.For))
			continue
		}
		fmt.Fprintf(s, "    network: refused %s: %s\n", term.OneLine(host.Host), term.OneLine(host.Why))
	}
	if len(unneeded) > 0 {
		fmt.Fprintf(s, "    network: refused %d that the program asks for by itself, and does without: %s\n", len(unneeded), term.OneLine(strings.Join(unneeded, ", ")))
	}
}

// afterCallback returns what a person can do about a callback that failed with an error.
func afterCallback(t client.Task, why string) string {
	if strings.Contains(why, ": "+syscall.ENAMETOOLONG.Error()) {
		return "send the task again with a shorter name in its callback"
	}
	return "remove what is in the way of its callback, then " + Command("release", t.ID)
}

// Reason returns why the task is where it is, in the words of its result or of its last event
// with a message; "" for none.
func (f *Details) Reason() string { return f.reason() }

// Asked returns the request, if it is kept and valid.
func (f *Details) Asked() (envelope.Task, bool) { return f.request() }

// RoundOf returns the denied task that this one does once more, and who denied it; "" for none.
func (f *Details) RoundOf() (denied envelope.ID, person string) {
	asked, ok := f.request()
	if !ok {
		return "", ""
	}
	return asked.RoundOf()
}

// Outcome describes a run.
func (f *Details) Outcome(r client.Run, now time.Time) string { return f.outcome(r, now) }

// reason returns the error of the result, or the message of the last event with one.
func (f *Details) reason() string {
	if f.Result != nil && f.Task.State == task.Done {
		r, findings := envelope.DecodeResult(f.Result)
		if !findings.Refused() && r.Error.Message != "" {
			return term.OneLine(r.Error.Message)
		}
	}
	for _, e := range slices.Backward(f.Events) {
		if data := EventData(e.Data); data["message"] != nil && e.Revision == f.Task.Revision {
			return term.OneLine(fmt.Sprint(data["message"]))
		}
	}
	return ""
}

// callbackError returns why the callback of the task failed.
func (f *Details) callbackError() string {
	for _, e := range slices.Backward(f.Events) {
		if e.Revision == f.Task.Revision && (e.Kind == task.KindCallbackFailed || e.Kind == task.KindCallbackAbandoned) {
			return callbackReason(e)
		}
	}
	return ""
}

// FailedAgain returns why a callback of the task has failed since its last release; "" when
// none has.
func (f *Details) FailedAgain() string {
	for _, e := range slices.Backward(f.Events) {
		switch e.Kind {
		case task.KindTaskReleased:
			return ""
		case task.KindCallbackFailed, task.KindCallbackAbandoned:
			return callbackReason(e)
		}
	}
	return ""
}

// callbackReason returns the error in an event about a callback.
func callbackReason(e client.Event) string {
	return term.OneLine(fmt.Sprint(EventData(e.Data)["reason"]))
}

// printRequest prints the request and its origin.
func (f *Details) printRequest(s term.Screen, now time.Time) {
	t := f.Task
	s.Line("  agent      %s", term.OneLine(t.Agent))
	s.Line("  requester  %s", term.OneLine(t.Requester))
	s.Line("  type       %s", term.OneLine(t.Type))
	f.printConversation(s)
	if f.Parent != "" {
		s.Line("  is for     %s", term.OneLine(string(f.Parent)))
	}
	if denied, person := f.RoundOf(); denied != "" {
		s.Line("  round of   %s, which %s denied", term.OneLine(string(denied)), term.OneLine(person))
	}
	if t.RunID != "" && (f.Conversation == nil || t.RunID != f.Conversation.Trace) {
		s.Line("  run        %s", term.OneLine(t.RunID))
	}
	for _, child := range f.Children {
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
	if t.Priority != 0 {
		s.Line("  priority   %d", t.Priority)
	}
	if labels := labelWords(f.Labels); labels != "" {
		s.Line("  labels     %s", labels)
	}
	task, ok := f.request()
	if other, ifFailed := task.After(); ok && other != "" {
		outcome := ""
		if ifFailed == envelope.RunIfFailed {
			outcome = ", however it ends"
		}
		s.Line("  after      %s%s", term.OneLine(string(other)), outcome)
	}
	if ok && task.Workdir() != "" {
		s.Line("  works in   %s", term.OneLine(task.Workdir()))
	}
	if ok && task.Description != "" {
		s.Line("  asks for   %s", term.OneLine(task.Description))
	}
}

// labelWords lists labels in the order of their keys.
func labelWords(labels map[string]string) string {
	var words []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		words = append(words, term.OneLine(key+"="+labels[key]))
	}
	return strings.Join(words, ", ")
}

// away says how far off a time is, unless it is more than ten years.
func away(d time.Duration) string {
	switch {
	case d <= 0:
		return ", past"
	case d < 10*365*24*time.Hour:
		return ", in " + term.Age(d)
	}
	return ""
}

// eventTable lists the events.
func (f *Details) eventTable() *term.Table {
	events := &term.Table{Weights: []int{0, 1, 2}}
	for _, e := range f.Events {
		events.Add(term.Cell{Text: "  " + term.Stamp(e.Time), Paint: term.Faint}, term.Cell{Text: term.OneLine(string(e.Kind))}, term.Cell{Text: describe(e)})
	}
	return events
}

// request returns the request, if it is kept and valid.
func (f *Details) request() (envelope.Task, bool) {
	if f.Request == nil {
		return envelope.Task{}, false
	}
	t, findings := dialect.DecodeTask(envelope.Dialect(f.Task.Dialect), f.Request, envelope.Legacy)
	return t, !findings.Refused()
}

// PendingApproval returns the approval that a person is asked for now; zero for none. Of several
// calls, it is the chosen one, or else the oldest.
func (f *Details) PendingApproval() (pending client.Approval) {
	for _, a := range f.Approvals {
		switch {
		case a.Decision != "":
		case a.Digest == f.Chosen:
			return a
		case pending.Asked.IsZero():
			pending = a
		}
	}
	return pending
}

// OpenCalls returns the calls about which a person is asked now, the oldest first.
func (f *Details) OpenCalls() []client.Approval {
	return slices.DeleteFunc(slices.Clone(f.Approvals), func(a client.Approval) bool {
		return a.Stage != envelope.ApprovalTool || a.Decision != ""
	})
}

// Began returns when the last run of the task began, or when the task went to an inbox;
// zero for neither. A run that goes on has no other record of its start.
func (f *Details) Began() time.Time {
	for _, e := range slices.Backward(f.Events) {
		if (e.Kind == task.KindTaskStarted || e.Kind == task.KindTaskWaiting) && e.Revision == f.Task.Revision {
			return e.Time
		}
	}
	return time.Time{}
}

// Progress returns the percentage, as 40%, and the words of the last progress that the
// running agent reported; "" for none.
func (f *Details) Progress() (percent, note string) {
	for _, e := range slices.Backward(f.Events) {
		switch e.Kind {
		case task.KindTaskStarted, task.KindTaskWaiting:
			return "", ""
		case task.KindTaskProgress:
			data := EventData(e.Data)
			if n, ok := data["pct"].(float64); ok {
				percent = fmt.Sprintf("%.0f%%", min(max(n, 0), 100))
			}
			note, _ = data["note"].(string)
			return percent, term.OneLine(note)
		}
	}
	return "", ""
}

// outcome describes a run.
func (f *Details) outcome(r client.Run, now time.Time) string {
	words := fmt.Sprintf("%d  ", r.Attempt)
	switch {
	case r.Finished.IsZero() && f.Task.State == task.Waiting && r.Attempt == f.Task.Attempt:
		words += "waits for " + term.Age(now.Sub(f.Began()))
	case r.Finished.IsZero() && f.Task.State == task.Running && r.Attempt == f.Task.Attempt:
		words += "at work for " + term.Age(now.Sub(f.Began()))
	case r.Finished.IsZero() && f.Task.Kind == envelope.RunLost && r.Attempt == f.Task.Attempt:
		words += "lost; it may have begun"
	case r.Finished.IsZero():
		words += "did not begin"
	case r.Started.IsZero():
		words += "was not started"
	default:
		how, note := cmp.Or(r.Signal, fmt.Sprintf("exit %d", r.ExitCode)), ""
		switch r.Cause {
		case "":
		case task.CausePutBack:
			note = ", not counted"
		case task.CauseNoAnswer, task.CauseRefused:
			how += ", without an answer yet"
		default:
			how += ", ended by us: " + string(r.Cause)
		}
		words += fmt.Sprintf("%s after %s%s", how, r.Finished.Sub(r.Started).Round(time.Millisecond), note)
	}
	if r.PID > 0 && r.Finished.IsZero() {
		words += fmt.Sprintf(", process %d", r.PID)
	}
	return words
}

// printConversation prints the dialect and the conversation of the request.
func (f *Details) printConversation(s term.Screen) {
	if f.Conversation == nil {
		return
	}
	s.Line("  dialect    %s", cmp.Or(term.OneLine(f.Task.Dialect), string(envelope.AINL)))
	for _, fact := range []struct{ format, value string }{
		{"  thread     %s", f.Conversation.Thread}, {"  trace      %s", f.Conversation.Trace}, {"  tie        %s", f.Conversation.Tie},
	} {
		if fact.value != "" {
			s.Line(fact.format, term.OneLine(fact.value))
		}
	}
}
