package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/access/client"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
	"mailboxd/mailbox"
)

// Records read a mailbox for the API: for callers of the daemon, and for mailboxd's commands
// without a daemon. They may be used concurrently.
type Records struct {
	Root   string         // the mailbox
	State  *mailbox.State // nil: no daemon has served it
	Ledger *ledger.Reader
}

// Tasks lists the tasks that pass the filter, in the order of Seq.
func (b *Records) Tasks(ctx context.Context, f client.Filter) (tasks []client.Task, err error) {
	if f.Searches() {
		tasks, err = b.search(ctx, f)
	} else {
		var rows []task.Task
		if rows, err = b.Ledger.Tasks(ctx, filterOf(f)); err == nil && f.Described {
			tasks, err = b.requested(ctx, rows)
		} else {
			tasks = viewsOf(rows)
		}
	}
	if err == nil && f.Described {
		err = b.addShortIDs(ctx, tasks)
	}
	if err == nil {
		err = b.addRuns(ctx, tasks)
	}
	return tasks, err
}

// Count returns how many tasks pass the filter, whatever its After and Limit.
func (b *Records) Count(ctx context.Context, f client.Filter) (int, error) {
	if f.Searches() {
		f.After, f.Limit = 0, 0
		tasks, err := b.search(ctx, f)
		return len(tasks), err
	}
	return b.Ledger.Count(ctx, filterOf(f))
}

// Latest returns the latest revision of a task; ledger.ErrUnknown when there is
// none.
func (b *Records) Latest(ctx context.Context, id envelope.ID) (client.Task, error) {
	revisions, err := b.revisions(ctx, id)
	if err != nil {
		return client.Task{}, err
	}
	return viewOf(revisions[len(revisions)-1]), nil
}

func (b *Records) revisions(ctx context.Context, id envelope.ID) ([]task.Task, error) {
	revisions, err := b.Ledger.Revisions(ctx, id)
	if err == nil && len(revisions) == 0 {
		err = fmt.Errorf("task %s %w", id, ledger.ErrUnknown)
	}
	return revisions, err
}

// Details returns all that is known of a task; ledger.ErrUnknown for an unknown one.
func (b *Records) Details(ctx context.Context, id envelope.ID) (client.TaskDetails, error) {
	revisions, err := b.revisions(ctx, id)
	if err != nil {
		return client.TaskDetails{}, err
	}
	last := revisions[len(revisions)-1]
	tasks := []client.Task{viewOf(last)}
	if err := errors.Join(b.addShortIDs(ctx, tasks), b.addRuns(ctx, tasks)); err != nil {
		return client.TaskDetails{}, err
	}
	file := client.TaskDetails{Task: tasks[0], Why: why(last), Earlier: viewsOf(revisions[:len(revisions)-1])}
	raw, err := b.Ledger.Raw(ctx, last.Seq)
	if err != nil && !errors.Is(err, ledger.ErrUnknown) { // retention may have removed it
		return client.TaskDetails{}, err
	}
	if jsontext.Value(raw).IsValid() {
		file.Request = raw
		t, _ := dialect.DecodeTask(last.Dialect, raw, envelope.Legacy)
		file.Labels = t.Labels()
	}
	if result, err := mailbox.ReadResult(b.Root, id); err == nil && jsontext.Value(result).IsValid() {
		file.Result = result // another file in its place doesn't hide the other fields
	}
	if file.Approvals, file.Unshown, err = b.asked(ctx, revisions); err != nil {
		return client.TaskDetails{}, err
	}
	if file.Runs, err = b.runs(ctx, last); err != nil {
		return client.TaskDetails{}, err
	}
	if file.Parent, file.Children, err = b.lineage(ctx, last); err != nil {
		return client.TaskDetails{}, err
	}
	if file.Conversation, file.Messages, err = b.conversation(ctx, last); err != nil {
		return client.TaskDetails{}, err
	}
	events, err := b.Ledger.History(ctx, id, maxEvents)
	file.Events = eventsOf(events)
	if last.State == task.Held {
		file.Why += heldError(last, events)
	}
	return file, err
}

// heldError returns the error that holds a task, if one of its reasons has one.
func heldError(row task.Task, events []task.Event) string {
	over := func(r task.Reason) bool { return !slices.Contains(row.Reasons, r) }
	for _, e := range slices.Backward(events) {
		var data struct {
			Reasons []task.Reason `json:"reasons"`
			Message string        `json:"message"`
		}
		if e.Kind != task.KindTaskHeld || e.Revision != row.Revision || json.Unmarshal(e.Data, &data) != nil {
			continue
		}
		if data.Message != "" && !slices.ContainsFunc(data.Reasons, over) {
			return ": " + data.Message
		}
	}
	return ""
}

// maxEvents limits the events of one read.
const maxEvents = 1000

func (b *Records) runs(ctx context.Context, row task.Task) (views []client.Run, err error) {
	runs, err := b.Ledger.Runs(ctx, row.Seq)
	for _, r := range runs {
		views = append(views, client.Run{
			Attempt: r.Attempt, PID: r.PID, Started: r.Started, Finished: r.Finished,
			ExitCode: r.ExitCode, Signal: r.Signal, Cause: r.Cause, Tokens: r.Tokens, USDCents: r.USDCents,
			Dir: b.State.RunDir(row.ID, row.Revision, r.Attempt), Worktree: b.worktree(r.ID),
		})
	}
	return views, err
}

// Events returns up to limit events after a seq, oldest first: those of one task, or all when id
// is "".
func (b *Records) Events(ctx context.Context, id envelope.ID, after int64, limit int) ([]client.Event, error) {
	events, err := b.Ledger.Events(ctx, id, after, limit)
	return eventsOf(events), err
}

func eventsOf(events []task.Event) []client.Event {
	views := make([]client.Event, len(events))
	for i, e := range events {
		views[i] = client.Event{Seq: e.Seq, Time: e.Time, Task: e.Task, Revision: e.Revision, Kind: e.Kind, Data: e.Data}
	}
	return views
}

func viewOf(t task.Task) client.Task {
	return client.Task{
		Seq: t.Seq, ID: t.ID, Revision: t.Revision, State: t.State, Held: t.Reasons, Until: t.Until,
		Attempt: t.Attempt, Agent: t.Agent, Requester: t.Requester, Type: t.Type, Deadline: t.Deadline,
		Received: t.Received, Finished: t.Finished, Status: t.Status, Kind: t.Kind,
		ResultFinal: t.State == task.Done && !t.Replaces, CallbackFailed: t.LacksCallback(), Depth: t.Depth, Priority: t.Priority, Dialect: foreign(t.Dialect), File: t.File, Offset: t.Offset,
	}
}

// foreign returns the dialect of a task; "" for AINL.
func foreign(d envelope.Dialect) string {
	if d == envelope.AINL {
		return ""
	}
	return string(d)
}

func viewsOf(rows []task.Task) (views []client.Task) {
	for _, row := range rows {
		views = append(views, viewOf(row))
	}
	return views
}

// why says what a task waits for, and who can release it; "" for nothing.
func why(t task.Task) string {
	switch t.State {
	case task.Received:
		return "an earlier revision of it is still running"
	case task.Queued:
		return "waits for a free slot"
	case task.Running:
		return fmt.Sprintf("its agent is at work, attempt %d", t.Attempt)
	case task.Waiting:
		if t.Until.IsZero() {
			return "it is in the inbox of its agent, and nobody has claimed it"
		}
		return "it was claimed for its agent, until " + t.Until.Local().Format(time.DateTime)
	case task.Review:
		return "it is answered, and a person has to agree: mailboxd approve"
	case task.Held:
		return whyHeld(t)
	}
	if t.LacksCallback() {
		return "its result could not be delivered to its callback: mailboxd release tries again"
	}
	return ""
}

func whyHeld(t task.Task) string {
	if t.WaitsForBudget() {
		return "what is left of its budget is reserved for others that run; see: mailboxd budget"
	}
	all := make([]string, len(t.Reasons))
	for i, r := range t.Reasons {
		all[i] = r.Facts().WhyOf(t.ID)
	}
	why := strings.Join(all, "; ")
	if !t.Until.IsZero() {
		until := ", until "
		if task.EndedBy(t.Reasons, task.Decide) {
			until = ", expires "
		}
		why += until + t.Until.Local().Format(time.DateTime)
	}
	return why
}
