package notice

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/decisions/task"
)

// The kinds of notices, as in the configuration and in a Notice.
const (
	waits    = "waits"
	finished = "finished"
	failed   = "failed"
)

// ends is the position in the events up to which ended tasks were reported. It isn't kept
// over a restart: a task that ends in the moment of a crash may be reported to nobody.
type ends struct {
	last     int64
	reported map[revision]bool // lately: a later event doesn't report a task again
}

// mostReported limits what is kept of reported tasks.
const mostReported = 10_000

// A revision is a revision of a task.
type revision struct {
	id     envelope.ID
	number int
}

// ending are the kinds of events that end a task, or may.
var ending = []task.Kind{
	task.KindTaskFinished, task.KindTaskRejected, task.KindApprovalApproved, task.KindApprovalDenied, task.KindApprovalExpired,
	task.KindOversightApproved, task.KindOversightRejected, task.KindOversightExpired, task.KindResultAdopted,
}

// lookEnds shows notices of the tasks that ended since the last look.
func (n *Notifier) lookEnds(ctx context.Context) (shown bool, err error) {
	rows, err := n.ended(ctx)
	if err != nil {
		return false, fmt.Errorf("look for tasks that ended: %w", err)
	}
	var well, badly []task.Task
	for _, row := range rows {
		switch row.Status {
		case envelope.OK, envelope.Partial:
			well = append(well, row)
		default:
			badly = append(badly, row)
		}
	}
	for _, part := range []struct {
		kind    string
		command []string
		rows    []task.Task
	}{{finished, n.commands.Finished, well}, {failed, n.commands.Failed, badly}} {
		if len(part.command) == 0 || len(part.rows) == 0 {
			continue
		}
		title, text := endMessage(part.kind, part.rows)
		err = errors.Join(err, n.show(ctx, part.command, n.notice(ctx, part.kind, title, text, part.rows)))
		shown = true
	}
	return shown, err
}

// ended returns the tasks that ended since the last call, each once. A task that a person or
// its requester cancelled is not among them.
func (n *Notifier) ended(ctx context.Context) (rows []task.Task, err error) {
	last, reported := n.ends.last, map[revision]bool{}
	if len(n.ends.reported) < mostReported {
		maps.Copy(reported, n.ends.reported)
	}
	for more := true; more; {
		events, err := n.memory.Events(ctx, "", last, eventPage)
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			last = e.Seq
			of := revision{e.Task, e.Revision}
			if !slices.Contains(ending, e.Kind) || reported[of] {
				continue
			}
			all, err := n.memory.Revisions(ctx, e.Task)
			if err != nil {
				return nil, err
			}
			at := slices.IndexFunc(all, func(t task.Task) bool { return t.Revision == e.Revision })
			if at >= 0 && all[at].State == task.Done && all[at].Kind != envelope.Cancelled {
				reported[of], rows = true, append(rows, all[at])
			}
		}
		more = len(events) == eventPage
	}
	n.ends = ends{last, reported}
	return rows, nil
}

// endMessage returns the title and the text of a notice of ended tasks. Like message, it
// shows only ids of plain characters.
func endMessage(kind string, rows []task.Task) (title, text string) {
	if len(rows) > 1 {
		return fmt.Sprintf("%d tasks %s", len(rows), kind), "See: mailboxd ps"
	}
	row, title := rows[0], "A task "+kind
	if !view.IsPlainID(row.ID) {
		return title, "One with an odd id: " + endWords(row) + ". See: mailboxd ps"
	}
	command := view.Command("result", row.ID)
	if kind == failed {
		command = view.Command("show", row.ID)
	}
	return title, fmt.Sprintf("Task %s: %s. See: %s", row.ID, endWords(row), command)
}

// endWords are the status of a task and what went wrong. Words of an agent are left out.
func endWords(row task.Task) string {
	switch {
	case row.Kind == "":
		return string(row.Status.Known())
	case !row.Kind.Known():
		return fmt.Sprintf("%s (%s)", row.Status.Known(), envelope.AgentError)
	}
	return fmt.Sprintf("%s (%s)", row.Status.Known(), row.Kind)
}

// A Notice is what a command gets on standard input, as one line of JSON. Title and text are
// mailboxd's words. Everything in Tasks but states and times comes from requesters and agents.
type Notice struct {
	Kind  string `json:"kind"` // waits, finished or failed
	Title string `json:"title"`
	Text  string `json:"text"`
	Count int    `json:"count"`
	Tasks []Task `json:"tasks"` // the first of them
}

// A Task is a task of a notice.
type Task struct {
	ID        envelope.ID     `json:"task_id"`
	Revision  int             `json:"revision"`
	Agent     string          `json:"agent"`
	Requester string          `json:"requester"`
	Type      string          `json:"task_type"`
	State     task.State      `json:"state"`
	Waits     []task.Reason   `json:"waits_for,omitempty"`
	Status    envelope.Status `json:"status,omitzero"`
	ErrorKind envelope.Kind   `json:"error_kind,omitzero"`
	Result    jsontext.Value  `json:"result,omitzero"` // as in its result file; absent if it is long
}

// mostTasks and mostBytes limit a notice.
const (
	mostTasks = 20
	mostBytes = 32 << 10 // of one result
)

// notice describes tasks for a command. The result of a task is part of it only when the task
// has ended: an answer in review is shown to nobody.
func (n *Notifier) notice(ctx context.Context, kind, title, text string, rows []task.Task) Notice {
	about := Notice{Kind: kind, Title: title, Text: text, Count: len(rows)}
	for _, row := range rows[:min(len(rows), mostTasks)] {
		t := Task{
			ID: row.ID, Revision: row.Revision, Agent: row.Agent, Requester: row.Requester, Type: row.Type,
			State: row.State, Status: row.Status, ErrorKind: row.Kind,
		}
		if kind == waits {
			t.Waits, t.Status, t.ErrorKind = waitsFor(row), "", ""
		} else if result, err := n.memory.Result(ctx, row.Seq); err == nil && len(result) <= mostBytes && jsontext.Value(result).IsValid() {
			t.Result = jsontext.Value(result)
		}
		about.Tasks = append(about.Tasks, t)
	}
	return about
}
