package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/access/replay"
	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

func (b *Records) replay(r *http.Request) (any, error) {
	return b.Replay(r.Context(), r.URL.Query().Get("run_id"))
}

// Replay returns the messages of a run, and where they differ from the ledger. The run is named
// by its run_id, or by one of its tasks; ledger.ErrUnknown when there is none.
func (b *Records) Replay(ctx context.Context, run string) (client.Replay, error) {
	run, rows, err := b.Ledger.InRun(ctx, run)
	if err != nil {
		return client.Replay{}, err
	}
	store := b.eventStore()
	var events []task.Event
	var subjects []replay.Subject
	for i, row := range rows {
		s, err := store.subject(ctx, row)
		if err != nil {
			return client.Replay{}, err
		}
		subjects = append(subjects, s)
		if slices.ContainsFunc(rows[:i], func(earlier task.Task) bool { return earlier.ID == row.ID }) {
			continue
		}
		own, err := b.allEvents(ctx, row.ID)
		if err != nil {
			return client.Replay{}, err
		}
		events = append(events, own...)
	}
	slices.SortFunc(events, func(a, b task.Event) int { return int(a.Seq - b.Seq) })
	var messages []replay.Message
	for _, e := range events {
		said, err := store.messages(ctx, e)
		if err != nil {
			return client.Replay{}, err
		}
		messages = append(messages, said...)
	}
	found := client.Replay{Run: run, Messages: []client.StoreMessage{}, Differences: replay.Check(messages, subjects)}
	for _, m := range messages {
		found.Messages = append(found.Messages, client.StoreMessage{Seq: m.Seq, Envelope: m.Line})
	}
	return found, nil
}

// allEvents returns all events of a task.
func (b *Records) allEvents(ctx context.Context, id envelope.ID) (all []task.Event, err error) {
	for after := int64(0); ; after = all[len(all)-1].Seq {
		events, err := b.Ledger.Events(ctx, id, after, maxEvents)
		if err != nil {
			return nil, err
		}
		if all = append(all, events...); len(events) < maxEvents {
			return all, nil
		}
	}
}

// An eventStore makes messages of Clutch of the events of the ledger. It is for one goroutine.
type eventStore struct {
	*Records
	done map[int64]replay.Subject // some finished tasks, which do not change any more
}

// maxSubjects limits the finished tasks that an eventStore keeps: each has its request and its
// result, and a stream may last for weeks.
const maxSubjects = 64

// keep keeps a finished task for the next events about it.
func (v *eventStore) keep(s replay.Subject) {
	if len(v.done) >= maxSubjects {
		clear(v.done)
	}
	v.done[s.Row.Seq] = s
}

func (b *Records) eventStore() *eventStore {
	return &eventStore{b, map[int64]replay.Subject{}}
}

// subject returns what the messages about a revision need.
func (v *eventStore) subject(ctx context.Context, row task.Task) (s replay.Subject, err error) {
	if s, ok := v.done[row.Seq]; ok {
		return s, nil
	}
	s = replay.Subject{Row: row}
	if s.Run, err = v.Ledger.RunOf(ctx, row); err != nil {
		return s, err
	}
	if s.Thread, err = v.threadOf(ctx, row); err != nil {
		return s, err
	}
	if row.Parent != 0 {
		parent, err := v.Ledger.Task(ctx, row.Parent)
		if err != nil {
			return s, err
		}
		s.Parent = parent.ID
	}
	if s.Request, _, err = v.request(ctx, row); err != nil {
		return s, err
	}
	conv, _, err := v.Ledger.Conversation(ctx, row.Seq)
	if err != nil {
		return s, err
	}
	s.Message = conv.Message
	if row.State != task.Done && !conversation.IsRouted(s.Request) && !s.Request.Clutch.IsSigned() {
		return s, nil
	}
	events, err := v.allEvents(ctx, row.ID)
	if err != nil {
		return s, err
	}
	s.Request = conversation.WithSignature(s.Request, row.Revision, events)
	if conversation.IsRouted(s.Request) {
		s.Chosen = conversation.ChosenBy(row.Revision, events)
	}
	if row.State != task.Done {
		return s, nil
	}
	end, _ := conversation.EndOf(row, events)
	s.End = end.Seq
	if s.Result, err = v.Ledger.Result(ctx, row.Seq); errors.Is(err, ledger.ErrUnknown) {
		err = nil // it is too old to be kept
	}
	if err == nil {
		v.keep(s)
	}
	return s, err
}

// messages returns the messages for an event. An event without a task has none, unless it is a
// message itself.
func (v *eventStore) messages(ctx context.Context, e task.Event) ([]replay.Message, error) {
	row, found, err := v.rowOf(ctx, e)
	if err != nil {
		return nil, err
	}
	var s replay.Subject
	if found {
		if s, err = v.subject(ctx, row); err != nil {
			return nil, err
		}
	}
	if e.Kind == task.KindMessageReceived {
		return v.forwarded(ctx, e, s)
	}
	if !found {
		return nil, nil
	}
	next, err := v.refusal(ctx, e, s.Row)
	if err != nil {
		return nil, err
	}
	return replay.Render(e, s, next), nil
}

// rowOf returns the revision that an event is about.
func (v *eventStore) rowOf(ctx context.Context, e task.Event) (task.Task, bool, error) {
	if e.Task == "" {
		return task.Task{}, false, nil
	}
	revisions, err := v.Ledger.Revisions(ctx, e.Task)
	at := slices.IndexFunc(revisions, func(t task.Task) bool { return t.Revision == e.Revision })
	if err != nil || at < 0 {
		return task.Task{}, false, err
	}
	return revisions[at], true, nil
}

// refusal returns the event that refused a task as it came; nil if none did.
func (v *eventStore) refusal(ctx context.Context, e task.Event, row task.Task) (*task.Event, error) {
	if e.Kind != task.KindTaskAccepted || row.Status != envelope.Rejected {
		return nil, nil
	}
	next, err := v.Ledger.Events(ctx, e.Task, e.Seq, 1)
	if err != nil || len(next) == 0 || next[0].Kind != task.KindTaskRejected && next[0].Kind != task.KindRoutingFailed {
		return nil, err
	}
	return &next[0], nil
}

// forwarded returns a recorded message.
func (v *eventStore) forwarded(ctx context.Context, e task.Event, s replay.Subject) ([]replay.Message, error) {
	var data struct {
		Message int64 `json:"message"`
	}
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return nil, fmt.Errorf("read event %d: %w", e.Seq, err)
	}
	m, err := v.Ledger.Message(ctx, data.Message)
	if errors.Is(err, ledger.ErrUnknown) {
		return nil, nil // it is too old to be kept
	}
	if err != nil {
		return nil, err
	}
	said, ok := replay.Forward(e.Seq, m, s)
	if !ok {
		return nil, nil
	}
	return []replay.Message{said}, nil
}
