package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/access/client"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

func (b *Records) thread(r *http.Request) (any, error) {
	return b.Thread(r.Context(), r.URL.Query().Get("id"))
}

func (b *Records) trace(r *http.Request) (any, error) {
	return b.Trace(r.Context(), r.URL.Query().Get("id"))
}

// Thread returns the conversation of that name, or that a task is part of, or
// else the chain of work of that name; ledger.ErrUnknown when there is none.
func (b *Records) Thread(ctx context.Context, id string) (client.Dialogue, error) {
	d, found, err := b.dialogue(ctx, "thread", id)
	if err != nil || found {
		return d, err
	}
	row, ok, err := b.taskNamed(ctx, id)
	switch {
	case err != nil:
		return d, err
	case ok:
		thread, err := b.threadOf(ctx, row)
		if err != nil {
			return d, err
		}
		d, _, err = b.dialogue(ctx, "thread", thread, row.Seq)
		return d, err
	}
	if d, found, err = b.dialogue(ctx, "trace", id); err == nil && !found {
		err = fmt.Errorf("conversation %s %w", id, ledger.ErrUnknown)
	}
	return d, err
}

// Trace returns the chain of work of that name, or that a task or a conversation is part of. For a
// task or a conversation without one, it returns the conversation. The error is ledger.ErrUnknown
// without either.
func (b *Records) Trace(ctx context.Context, id string) (client.Dialogue, error) {
	d, found, err := b.dialogue(ctx, "trace", id)
	if err != nil || found {
		return d, err
	}
	thread, err := b.Thread(ctx, id)
	if err != nil {
		return d, err
	}
	for _, m := range thread.Messages {
		if m.Trace != "" {
			d, _, err = b.dialogue(ctx, "trace", m.Trace)
			return d, err
		}
	}
	return thread, nil
}

// taskNamed returns the latest revision of a task, and whether there is one.
func (b *Records) taskNamed(ctx context.Context, id string) (task.Task, bool, error) {
	revisions, err := b.Ledger.Revisions(ctx, envelope.ID(id))
	if err != nil || len(revisions) == 0 {
		return task.Task{}, false, err
	}
	return revisions[len(revisions)-1], true, nil
}

// threadOf returns the conversation that a task is part of: the one that its request names, or the
// one of its parent. The first AINL task of a tree names it.
func (b *Records) threadOf(ctx context.Context, row task.Task) (string, error) {
	for {
		k, ok, err := b.Ledger.Conversation(ctx, row.Seq)
		if err != nil || ok && k.Thread != "" {
			return k.Thread, err
		}
		if t, ok, err := b.request(ctx, row); err != nil || ok && t.Named("mbx.thread_id") != "" {
			return t.Named("mbx.thread_id"), err
		}
		if row.Parent == 0 {
			return string(row.ID), nil
		}
		if row, err = b.Ledger.Task(ctx, row.Parent); err != nil {
			return "", err
		}
	}
}

// request returns the request of a task, if it is kept.
func (b *Records) request(ctx context.Context, row task.Task) (envelope.Task, bool, error) {
	raw, err := b.Ledger.Raw(ctx, row.Seq)
	if errors.Is(err, ledger.ErrUnknown) {
		return envelope.Task{}, false, nil // too old
	}
	if err != nil {
		return envelope.Task{}, false, err
	}
	t, findings := dialect.DecodeTask(row.Dialect, raw, envelope.Legacy)
	return t, !findings.Refused(), nil
}

// dialogue returns a thread or a trace, and whether it exists: its messages, its tasks, their
// descendants, and the messages about them. The caller may name more tasks that belong to it.
func (b *Records) dialogue(ctx context.Context, kind, id string, more ...int64) (d client.Dialogue, found bool, err error) {
	d = client.Dialogue{Kind: kind, ID: id, Tasks: []client.Part{}, Messages: []client.Message{}, Events: []client.Event{}}
	thread, trace := id, ""
	if kind == "trace" {
		thread, trace = "", id
	}
	said, err := b.Ledger.LinkedMessages(ctx, thread, trace)
	if err != nil {
		return d, false, err
	}
	seqs, err := b.Ledger.LinkedTasks(ctx, thread, trace)
	if err != nil || len(said)+len(seqs)+len(more) == 0 {
		return d, false, err
	}
	if root, ok, err := b.taskNamed(ctx, id); err != nil {
		return d, false, err
	} else if ok && kind == "thread" && (root.Dialect == envelope.AINL || root.Dialect == "") {
		seqs = append(seqs, root.Seq) // its conversation doesn't name the thread
	}
	for _, m := range said {
		seqs = append(seqs, m.Task)
	}
	rows, err := b.withDescendants(ctx, append(seqs, more...))
	if err != nil {
		return d, false, err
	}
	return d, true, b.fill(ctx, &d, rows, said)
}

// maxTasks limits the tasks in a Dialogue.
const maxTasks = 1000

// withDescendants returns tasks and their descendants, the oldest first. It skips 0.
func (b *Records) withDescendants(ctx context.Context, seqs []int64) (rows []task.Task, err error) {
	met := map[int64]bool{0: true}
	for len(seqs) > 0 && len(rows) < maxTasks {
		seq := seqs[0]
		seqs = seqs[1:]
		if met[seq] {
			continue
		}
		met[seq] = true
		row, err := b.Ledger.Task(ctx, seq)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
		children, err := b.Ledger.Dependents(ctx, seq)
		if err != nil {
			return nil, err
		}
		for _, c := range children {
			seqs = append(seqs, c.Seq)
		}
	}
	slices.SortFunc(rows, func(a, b task.Task) int { return int(a.Seq - b.Seq) })
	return rows, nil
}

// fill adds the tasks, their events and the messages to a Dialogue.
func (b *Records) fill(ctx context.Context, d *client.Dialogue, rows []task.Task, said []task.Message) error {
	ids := map[int64]envelope.ID{}
	for _, row := range rows {
		ids[row.Seq] = row.ID
		part, err := b.part(ctx, row)
		if err != nil {
			return err
		}
		d.Tasks = append(d.Tasks, part)
		about, err := b.Ledger.About(ctx, row.Seq)
		if err != nil {
			return err
		}
		said = append(said, about...)
		events, err := b.Ledger.History(ctx, row.ID, maxEvents)
		if err != nil {
			return err
		}
		for _, e := range eventsOf(events) {
			if e.Revision == row.Revision {
				d.Events = append(d.Events, e)
			}
		}
	}
	slices.SortFunc(d.Events, func(a, b client.Event) int { return int(a.Seq - b.Seq) })
	slices.SortFunc(said, func(a, b task.Message) int { return int(a.Seq - b.Seq) })
	said = slices.CompactFunc(said, func(a, b task.Message) bool { return a.Seq == b.Seq })
	for _, m := range said[max(0, len(said)-maxEvents):] {
		d.Messages = append(d.Messages, messageOf(m, ids[m.Task]))
	}
	return nil
}

// part returns the entry of a task in a Dialogue.
func (b *Records) part(ctx context.Context, row task.Task) (client.Part, error) {
	part := client.Part{Task: viewOf(row)}
	if row.Parent != 0 {
		parent, err := b.Ledger.Task(ctx, row.Parent)
		if err != nil {
			return part, err
		}
		part.Parent = parent.ID
	}
	k, _, err := b.Ledger.Conversation(ctx, row.Seq)
	if err != nil {
		return part, err
	}
	part.Tie = string(k.Tie)
	t, _, err := b.request(ctx, row)
	if err != nil {
		return part, err
	}
	part.Asks = t.Description
	part.Answer, err = b.ending(ctx, row)
	return part, err
}

// ending returns the summary of a task's result, if it is kept.
func (b *Records) ending(ctx context.Context, row task.Task) (string, error) {
	if row.State != task.Done {
		return "", nil // an answer in review is withheld
	}
	raw, err := b.Ledger.Result(ctx, row.Seq)
	if errors.Is(err, ledger.ErrUnknown) {
		return "", nil
	}
	r, findings := envelope.DecodeResult(raw)
	switch {
	case err != nil || findings.Refused():
		return "", err
	case r.Error.Message != "":
		return r.Error.Message, nil
	}
	return r.Output.Summary, nil
}

// messageOf returns a message as the API has it.
func messageOf(m task.Message, task envelope.ID) client.Message {
	said := client.Message{
		Seq: m.Seq, Time: m.Time, Dialect: string(m.Dialect), Act: string(m.Act), ID: m.ID, Cause: m.Cause, Task: task,
		Thread: m.Thread, Trace: m.Trace, From: m.From, To: m.To, Via: string(m.Via), Lost: m.Lost, Inbox: m.Inbox, Posted: m.Delivered,
	}
	if jsontext.Value(m.Body).IsValid() {
		said.Line = m.Body
	}
	if codec, ok := dialect.Of(m.Dialect); ok {
		read, _ := codec.Decode(m.Body, envelope.Legacy) // the readable parts of a refused message
		said.Text, said.Waits = wordsOf(read), read.WantsReply
	}
	return said
}

// wordsOf returns the text of a message for people.
func wordsOf(m envelope.Message) string {
	switch {
	case m.Text != "":
		return m.Text
	case m.Failure.Message != "":
		return m.Failure.Message
	}
	return m.Request.Description
}

// conversation returns the messages' state of a task.
func (b *Records) conversation(ctx context.Context, row task.Task) (*client.Conversation, []client.Message, error) {
	k, ok, err := b.Ledger.Conversation(ctx, row.Seq)
	if err != nil || !ok {
		return nil, nil, err
	}
	about, err := b.Ledger.About(ctx, row.Seq)
	var said []client.Message
	for _, m := range about[max(0, len(about)-maxEvents):] {
		said = append(said, messageOf(m, row.ID))
	}
	return &client.Conversation{
		Message: k.Message, Thread: k.Thread, Trace: k.Trace, Tie: string(k.Tie), Notified: k.Notified, Open: k.Open, Rounds: k.Rounds,
	}, said, err
}
