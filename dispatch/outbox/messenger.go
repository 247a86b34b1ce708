package outbox

import (
	"context"
	"errors"
	"slices"
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/schedule"
	"mailboxd/internal/stores/ledger"
	"mailboxd/internal/testtools/fault"
)

// A Messenger records the messages of the daemon and its agents, notifies requesters, and
// delivers due messages to inboxes.
type Messenger struct {
	*store.Shared
	writer        *store.Writer
	Notifications *schedule.DutyQueue // tasks whose requesters may need a notification
}

// NotifyLater queues a task for the notification of its requester, and starts the delivery of
// due messages. 0 is no task: messages are only delivered. The engine is not idle until both
// are done. It never blocks.
func (ms *Messenger) NotifyLater(seq int64) { ms.Notifications.Add(seq) }

// NotifyLaterOf is NotifyLater for a task that was just moved.
func (ms *Messenger) NotifyLaterOf(row task.Task) {
	if conversation.MayNotify(row) {
		ms.NotifyLater(row.Seq)
	}
}

// ResumeNotifications continues the notifications that an earlier daemon did not send.
func (ms *Messenger) ResumeNotifications(ctx context.Context) error {
	open, err := ms.Ledger.WithOpenNotifications(ctx)
	for _, seq := range open {
		ms.NotifyLater(seq)
	}
	ms.NotifyLater(0)
	return err
}

// notifyBatchSize is how many tasks one transaction handles.
const notifyBatchSize = 100

// NotifyAll notifies requesters and delivers messages until ctx ends. After an error that
// concerns all inboxes it tries again after a pause; the engine is not idle until then. An
// inbox with an error of its own delays no other.
func (ms *Messenger) NotifyAll(ctx, work context.Context) {
	var pause <-chan time.Time
	var pending deliveryRound
	for {
		select {
		case <-ctx.Done():
			return
		case <-ms.Notifications.Added:
		case <-pause:
			pause, pending = nil, deliveryRound{}
		}
		seqs := ms.Notifications.Take(notifyBatchSize)
		err := ms.notifyTasks(work, slices.Compact(slices.Sorted(slices.Values(seqs))))
		if err == nil {
			pending, err = ms.deliverDue(work, pending)
		}
		if err != nil && ctx.Err() == nil {
			ms.FaultLog.Report(store.Notifying, task.Task{}, err)
			select {
			case <-ctx.Done():
			case <-time.After(store.RetryPause): // also when tasks are added meanwhile
			}
			ms.requeue(seqs)
			continue
		}
		ms.FaultLog.Clear(store.Notifying)
		if pending.skipped != nil && pause == nil {
			pause = time.After(store.SettlePause)
		}
		ms.Notifications.Done(len(seqs))
	}
}

// requeue queues the tasks of a failed batch again. For an empty batch, the delivery failed.
func (ms *Messenger) requeue(seqs []int64) {
	if len(seqs) == 0 {
		ms.NotifyLater(0)
	}
	for _, seq := range seqs {
		ms.NotifyLater(seq)
	}
	ms.Notifications.Done(len(seqs))
}

// notifyTasks notifies the requesters of some tasks.
func (ms *Messenger) notifyTasks(ctx context.Context, seqs []int64) error {
	var open []int64
	for _, seq := range seqs {
		conv, ok, err := ms.Ledger.Conversation(ctx, seq)
		if err != nil {
			return err
		}
		if ok && conv.Open {
			open = append(open, seq)
		}
	}
	if len(open) == 0 {
		return nil
	}
	_, err := ms.writer.Commit(ctx, func(tx *store.Transaction) error { // Commit, since the delivery is next anyway
		for _, seq := range open {
			if err := ms.Notify(tx, seq); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		fault.Point("told")
	}
	return err
}

// Notify notifies the requester of a task about the events since the last notification, and
// records that, so each notification is sent once. The end of the task is the last one. The
// caller starts the delivery afterwards.
func (ms *Messenger) Notify(tx *store.Transaction, seq int64) error {
	conv, ok, err := tx.Conversation(seq)
	if err != nil || !ok || !conv.Open {
		return err
	}
	row, found, err := tx.Task(seq)
	if err != nil || !found {
		return err
	}
	events, err := tx.EventsSince(seq, conv.Notified)
	if err != nil {
		return err
	}
	about, err := ms.notifiable(tx, row, conv)
	if err != nil {
		return err
	}
	last := conv.Notified
	if len(events) > 0 {
		last = events[len(events)-1].Seq
	}
	inbox := ""
	if !about.Silent() {
		inbox = ms.InboxOf(row.Requester)
	}
	at := time.Now()
	if end, found := conversation.EndOf(row, events); found {
		at = end.Time
	}
	for _, m := range conversation.Notifications(about, events) {
		if m.Time.IsZero() {
			m.Time = at
		}
		if err := ms.Emit(tx, row.Dialect, m, seq, inbox); err != nil {
			return err
		}
	}
	if last == conv.Notified && row.State != task.Done {
		return nil // nothing is new
	}
	return tx.MarkNotified(seq, last, row.State != task.Done)
}

// addClutch adds what the requester of a task in Clutch is notified of beside the events: its own
// trace and domain, and how its agent was chosen.
func (ms *Messenger) addClutch(tx *store.Transaction, row task.Task, about *conversation.Request) error {
	if row.Dialect != envelope.Clutch {
		return nil
	}
	about.Seq, about.Received = row.Seq, row.Received
	raw, err := tx.Raw(row.Seq)
	if errors.Is(err, ledger.ErrUnknown) {
		return nil // it is no longer kept
	}
	if err != nil {
		return err
	}
	t, _ := dialect.DecodeTask(row.Dialect, raw, ms.Opts.Reading)
	about.Clutch, about.Routing = t.Clutch, t.Clutch.Wants("routing")
	routed := conversation.IsRouted(t)
	if !routed && !t.Clutch.IsSigned() {
		return nil
	}
	events, err := tx.EventsSince(row.Seq, 0)
	if routed {
		about.Chosen = conversation.ChosenBy(row.Revision, events)
	}
	about.Clutch = conversation.WithSignature(t, row.Revision, events).Clutch
	return err
}

// notifiable returns a task as its requester knows it.
func (ms *Messenger) notifiable(tx *store.Transaction, row task.Task, conv task.Conversation) (conversation.Request, error) {
	t := conversation.Request{
		ID: row.ID, Type: row.Type, Requester: row.Requester, Agent: row.Agent, Dialect: row.Dialect,
		Message: conv.Message, Thread: conv.Thread, Trace: conv.Trace, Tie: conv.Tie,
	}
	if err := ms.addClutch(tx, row, &t); err != nil || row.State != task.Done {
		return t, err
	}
	raw, err := tx.Result(row.Seq)
	if err != nil {
		return t, err
	}
	result := conversation.ResultOf(row, raw)
	t.Result = &result
	cancels, err := tx.Replies(conv.Message, envelope.Cancels, row.Requester, row.Received.Add(-Premature))
	for _, m := range cancels {
		if m.Task == row.Seq { // a message before the request was answered with an error
			t.Cancels = append(t.Cancels, m.ID)
		}
	}
	return t, err
}

// Reporting returns a function that records the progress of a run and notifies the requester;
// nil when the requester must not be notified.
func (ms *Messenger) Reporting(ctx context.Context, row task.Task) func(envelope.Message) {
	if !conversation.MayNotify(row) {
		return nil
	}
	return func(m envelope.Message) {
		err := ms.writer.Update(context.WithoutCancel(ctx), func(tx *store.Transaction) error {
			return tx.Log(store.Event(row, task.KindTaskProgress, conversation.Progress(m)))
		})
		if err != nil {
			ms.Log(row).Warn().Err(err).Msg("progress of a run not noted")
			return
		}
		ms.NotifyLaterOf(row)
	}
}

// Premature is how long a message that cancels an unknown request stays valid (CLOWL-27).
const Premature = 10 * time.Minute

// WakeFor resumes the tasks that wait for a message about a task: the task itself and its
// parent.
func (ms *Messenger) WakeFor(tx *store.Transaction, row task.Task, m envelope.Message) error {
	if row.Seq == 0 || !conversation.Resumes(m.Act) {
		return nil
	}
	fresh, found, err := tx.Task(row.Seq)
	if err != nil || !found {
		return err
	}
	question := conversation.IsQuestion(m, fresh)
	parent, hasParent, err := tx.Task(fresh.Parent)
	if err != nil {
		return err
	}
	for _, waiting := range []task.Task{fresh, parent} {
		if waiting.Seq == parent.Seq && !hasParent || !conversation.Wakes(m, question, waiting) {
			continue
		}
		if _, _, err := ms.Wake(tx, waiting, map[string]any{"from": m.From}); err != nil {
			return err
		}
	}
	return nil
}

// Wake resumes a suspended task, unless something else holds it too.
func (ms *Messenger) Wake(tx *store.Transaction, row task.Task, why map[string]any) (task.Task, bool, error) {
	next, woken, err := ms.writer.DecideOn(tx, row.Seq, false, &core.Wake{Task: row.Seq, Attempt: row.Attempt, Data: why})
	if !woken {
		next = row
	}
	return next, woken, err
}
