package replay

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/task"
)

// A folded is the state of one revision of a task, as its messages say it.
type folded struct {
	parent   string
	agent    string // the sender of its end; "" before
	accepted bool
	attempt  int
	ends     []ending
}

// An ending is a terminal message.
type ending struct {
	word   string // its type
	kind   string // of the failure
	status string // of the payload
}

// A revision names one revision of a task.
type revision struct {
	task string
	n    int
}

// Check folds messages to the states of tasks, and returns where they differ from the ledger's.
// The subjects are the tasks of the run.
func Check(messages []Message, subjects []Subject) (differences []string) {
	states := replayed(messages)
	for _, s := range subjects {
		name := string(s.Row.ID)
		if c := s.Request.Clutch; c != nil && c.TaskID != "" {
			name = c.TaskID
		}
		at := revision{name, s.Row.Revision}
		state, known := states[at]
		delete(states, at)
		if !known && s.Row.State == task.Done && s.Request.Raw == nil {
			continue // its events are too old to be kept, like its request
		}
		if !known {
			differences = append(differences, fmt.Sprintf("task %s r%d: no message requests it", name, s.Row.Revision))
			continue
		}
		for _, difference := range state.compare(s) {
			differences = append(differences, fmt.Sprintf("task %s r%d: %s", name, s.Row.Revision, difference))
		}
	}
	for _, at := range slices.SortedFunc(maps.Keys(states), func(a, b revision) int { return strings.Compare(a.task, b.task) }) {
		differences = append(differences, fmt.Sprintf("task %s r%d: the ledger does not have it", at.task, at.n))
	}
	return differences
}

// replayed returns the states that messages make.
func replayed(messages []Message) map[revision]*folded {
	states, latest := map[revision]*folded{}, map[string]int{}
	for _, m := range messages {
		var e struct {
			Parent  string         `json:"parent_task_id"`
			Attempt int            `json:"attempt"`
			Payload jsontext.Value `json:"payload"`
			Meta    struct {
				Revision int    `json:"revision"`
				Cause    string `json:"causation_id"`
			} `json:"meta"`
		}
		if json.Unmarshal(m.Line, &e, lenient) != nil {
			continue
		}
		if m.Type == "task.request" && m.From == orchestrator && e.Meta.Cause != "" {
			continue // the request again, for the agent that was chosen
		}
		if m.Type == "task.request" {
			latest[m.Task]++
			states[revision{m.Task, latest[m.Task]}] = &folded{parent: e.Parent, attempt: 0}
			continue
		}
		state := states[revision{m.Task, max(1, e.Meta.Revision)}]
		if state == nil {
			continue // about no task of the run
		}
		state.parent = cmp.Or(state.parent, e.Parent) // a request need not name it
		state.add(m, e.Attempt, e.Payload)
	}
	return states
}

// add adds a message about a task to its state.
func (f *folded) add(m Message, attempt int, payload jsontext.Value) {
	var p struct {
		Status  string `json:"status"`
		Details struct {
			Kind string `json:"kind"`
		} `json:"details"`
	}
	switch m.Type {
	case "task.accept":
		f.accepted = true
	case "task.progress":
		f.attempt = max(f.attempt, attempt)
	case "task.result", "task.error", "task.timeout", "task.cancel":
		_ = json.Unmarshal(payload, &p, lenient) // a payload that says nothing of these
		if m.Type == "task.cancel" && p.Status != string(envelope.Stopped) {
			return // it asks for an end
		}
		f.agent, f.ends = m.From, append(f.ends, ending{m.Type, p.Details.Kind, p.Status})
	}
}

// compare returns where the state differs from a task of the ledger.
func (f *folded) compare(s Subject) (differences []string) {
	differ := func(format string, args ...any) { differences = append(differences, fmt.Sprintf(format, args...)) }
	refused := s.Row.Status == envelope.Rejected && s.Parent == "" // perhaps for the parent that it names (CLUTCH-23)
	if !refused && f.parent != "" && dialect.TaskID(f.parent) != s.Parent || f.parent == "" && s.Parent != "" {
		differ("its parent is %q, and %q in the ledger", f.parent, s.Parent)
	}
	if f.attempt > s.Row.Attempt {
		differ("attempt %d began, and the ledger has %d", f.attempt, s.Row.Attempt)
	}
	done := s.Row.State == task.Done
	switch {
	case done != (len(f.ends) > 0):
		differ("it has %d terminal messages, and its state in the ledger is %s", len(f.ends), s.Row.State)
		return differences
	case len(f.ends) > 1:
		differ("it has %d terminal messages", len(f.ends))
		return differences
	case !done:
		return differences
	}
	if got := f.ends[0].outcome(); got != outcomeOf(s.Row) {
		differ("it ended as %s, and in the ledger as %s", got, outcomeOf(s.Row))
	}
	if s.Row.Agent != "" && s.Row.Agent != envelope.Everybody && f.agent != s.Row.Agent {
		differ("%s ended it, and %s in the ledger", f.agent, s.Row.Agent)
	}
	return differences
}

// outcome returns how the task ended, in the words of outcomeOf.
func (e ending) outcome() string {
	switch {
	case e.word == "task.result" && e.status == string(envelope.Partial):
		return string(envelope.Partial)
	case e.word == "task.result":
		return string(envelope.OK)
	case e.word == "task.cancel":
		return string(envelope.Cancelled)
	}
	return e.kind
}

// outcomeOf returns how a task of the ledger ended: its status, or the kind of its failure.
func outcomeOf(t task.Task) string {
	switch {
	case t.Status == envelope.OK || t.Status == envelope.Partial:
		return string(t.Status)
	case t.Status == envelope.Stopped:
		return string(envelope.Cancelled)
	case t.Kind == "":
		return string(envelope.AgentError)
	}
	return string(t.Kind)
}
