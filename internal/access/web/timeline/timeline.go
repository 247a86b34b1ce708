// Package timeline says which phases a task went through, and how long each took.
package timeline

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/decisions/task"
)

// A Phase is a part of the life of a task, from an event to the next.
type Phase struct {
	Name  string
	Began time.Time
	Took  string // "" for one that goes on
	Goes  bool   // it goes on

	X, Width float64 // of its bar, in percent
}

// maxPhases limits a timeline to its last phases.
const maxPhases = 40

// Of returns the phases of the latest revision of a task. Of one of its attempts, the number of tools
// is known.
func Of(found client.TaskDetails, attempt, tools int, now time.Time) (all []Phase) {
	var times []time.Time
	ended := false
	runs := 0
	for _, e := range found.Events {
		if e.Revision != found.Task.Revision {
			continue
		}
		name, end := phaseOf(e)
		if name == "" {
			continue
		}
		if e.Kind == task.KindTaskStarted {
			if runs++; attempt == runs && tools == 1 {
				name += ", 1 tool"
			} else if attempt == runs && tools > 1 {
				name += fmt.Sprintf(", %d tools", tools)
			}
		}
		if n := len(all); n > 0 && all[n-1].Name == received && e.Kind == task.KindTaskStarted {
			all[n-1].Name = "Queued"
		}
		all, times, ended = append(all, Phase{Name: name, Began: e.Time}), append(times, e.Time), end
	}
	if len(all) == 0 {
		return nil
	}
	end := now
	if ended {
		end = times[len(times)-1]
	}
	times = append(times, end)
	whole := max(end.Sub(times[0]).Seconds(), 0.001)
	for i := range all {
		took := max(times[i+1].Sub(times[i]), 0)
		all[i].X = round(times[i].Sub(times[0]).Seconds() / whole * 100)
		all[i].Width = round(max(took.Seconds()/whole*100, 0.5))
		all[i].X = min(all[i].X, 99.5)
		switch all[i].Goes = i == len(all)-1 && !ended; {
		case i == len(all)-1 && ended:
			all[i].Took = "" // it is an instant
		case !all[i].Goes:
			all[i].Took = tookWords(took)
		}
	}
	return slices.Clone(all[max(0, len(all)-maxPhases):])
}

// received is the first phase of a task. A task that waits for nothing else is queued in it.
const received = "Received"

// phaseOf returns the name of the phase that an event begins; "" for an event that begins none. The
// end of a task begins the last.
func phaseOf(e client.Event) (name string, end bool) {
	data := view.EventData(e.Data)
	switch e.Kind {
	case task.KindTaskAccepted:
		return received, false
	case task.KindTaskHeld:
		return "Held: " + reasonWords(data["reasons"]), false
	case task.KindTaskQueued, task.KindTaskReleased, task.KindTaskResumed, task.KindTaskPutBack:
		return "Queued", false
	case task.KindTaskRetried:
		return "Waits for another attempt", false
	case task.KindApprovalAsked:
		switch data["stage"] {
		case "post":
			return "Waits for approval of its answer", false
		case "tool":
			return "Waits for approval of a call", false
		}
	case task.KindApprovalApproved, task.KindApprovalDenied, task.KindApprovalExpired:
		switch {
		case data["stage"] == "tool":
			return "Run", false
		case e.Kind == task.KindApprovalApproved:
			return "Approved", false
		case e.Kind == task.KindApprovalDenied:
			return "Denied", false
		}
	case task.KindTaskStarted:
		return "Run", false
	case task.KindTaskWaiting:
		return "In the inbox", false
	case task.KindOversightAsked:
		return "Waits for its overseer", false
	case task.KindTaskFinished:
		return "Ended: " + fmt.Sprint(data["status"]), true
	case task.KindTaskCancelled:
		return "Cancelled", true
	case task.KindTaskRejected:
		return "Rejected", true
	}
	return "", false
}

// reasonWords writes the reasons of an event for which a task is held.
func reasonWords(reasons any) string {
	var words []string
	list, _ := reasons.([]any)
	for _, one := range list {
		words = append(words, strings.ReplaceAll(fmt.Sprint(one), "_", " "))
	}
	return strings.Join(words, ", ")
}

// tookWords writes how long something took.
func tookWords(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return term.Age(d)
}

// round keeps one digit.
func round(f float64) float64 { return math.Round(f*10) / 10 }
