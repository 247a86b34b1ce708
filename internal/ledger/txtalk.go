package ledger

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/index"
	"mailboxd/internal/journal"
	"mailboxd/internal/task"
)

// StartConversation writes the conversation of a task that was just added.
func (tx *Tx) StartConversation(c task.Conversation) error {
	e, err := tx.whole(c.Task)
	if err == nil && e == nil {
		err = ErrUnknown
	}
	if err != nil {
		return fmt.Errorf("start conversation of task %d: %w", c.Task, err)
	}
	e.parts.conversation = &c
	tx.row(e, index.ConversationRow(c))
	return nil
}

// MarkNotified notes up to which event the requester of a task was notified, and whether
// there may be more.
func (tx *Tx) MarkNotified(seq, event int64, open bool) error {
	return tx.converse("mark as notified", seq, func(c *task.Conversation) { c.Notified, c.Open = event, open })
}

// SendBack counts that the overseer of a task has sent it back once more, and returns how
// often it has. A task without a Conversation is ErrUnknown.
func (tx *Tx) SendBack(seq int64) (rounds int, err error) {
	rounds = -1
	err = tx.converse("send back", seq, func(c *task.Conversation) {
		c.Rounds++
		rounds = c.Rounds
	})
	if err == nil && rounds < 0 {
		return 0, fmt.Errorf("send back task %d: %w", seq, ErrUnknown)
	}
	return rounds, err
}

func (tx *Tx) converse(verb string, seq int64, change func(*task.Conversation)) error {
	e, err := tx.whole(seq)
	if err != nil {
		return fmt.Errorf("%s task %d: %w", verb, seq, err)
	}
	if e != nil && e.parts.conversation != nil {
		change(e.parts.conversation)
		tx.row(e, index.ConversationRow(*e.parts.conversation))
	}
	return nil
}

// Conversation returns the conversation of a task, and whether there is one.
func (tx *Tx) Conversation(seq int64) (task.Conversation, bool, error) {
	e, err := tx.entry(seq)
	if e == nil || err != nil {
		return task.Conversation{}, false, err
	}
	return tx.ledger.conversationOf(e)
}

func (l *Ledger) conversationOf(e *entry) (task.Conversation, bool, error) {
	switch {
	case e.parts == nil:
		return l.index.Conversation(background, e.Seq)
	case e.parts.conversation == nil:
		return task.Conversation{}, false, nil
	}
	return *e.parts.conversation, true, nil
}

// Awaiting returns the tasks of a conversation that wait for a message to their agent, or for
// others to end, the oldest first.
func (tx *Tx) Awaiting(thread, agent string) (awaiting []task.Task, err error) {
	if thread == "" {
		return nil, nil
	}
	stored, err := tx.ledger.index.OpenInThread(background, thread)
	if err != nil {
		return nil, err
	}
	seqs := map[int64]bool{}
	for _, seq := range stored {
		seqs[seq] = true
	}
	for seq := range tx.ledger.base.threads[thread] {
		seqs[seq] = true
	}
	list, err := tx.find(seqs)
	for _, e := range list {
		if !e.Latest || e.State != task.Held || e.Agent != agent || !slices.ContainsFunc(e.Reasons, awaits) {
			continue
		}
		c, found, err := tx.ledger.conversationOf(e)
		if err != nil {
			return nil, err
		}
		if found && c.Thread == thread {
			awaiting = append(awaiting, e.Task.Task)
		}
	}
	return awaiting, err
}

func awaits(r task.Reason) bool { return r == task.Children || r == task.Reply }

// IsRequesterIn reports whether a requester has requested one of the latest thousand tasks of
// a conversation.
func (tx *Tx) IsRequesterIn(thread, requester string) (bool, error) {
	if thread == "" {
		return false, nil
	}
	list, err := tx.find(tx.ledger.base.threads[thread])
	if err != nil {
		return false, err
	}
	for _, e := range list {
		if e.Requester == requester && e.parts != nil && e.parts.conversation != nil && e.parts.conversation.Thread == thread {
			return true, nil
		}
	}
	return tx.ledger.index.Requested(background, thread, requester)
}

// children returns all revisions whose parent is a task, as they are now.
func (tx *Tx) children(seq int64) ([]*entry, error) {
	seqs := map[int64]bool{}
	stored, err := tx.ledger.index.Dependents(background, seq)
	if err != nil {
		return nil, err
	}
	for _, c := range stored {
		seqs[c.Seq] = true
	}
	for child := range tx.ledger.base.children[seq] {
		seqs[child] = true
	}
	list, err := tx.find(seqs)
	return slices.DeleteFunc(list, func(e *entry) bool { return e.Parent != seq }), err
}

// CountChildren counts the revisions that runs of a task have requested.
func (tx *Tx) CountChildren(seq int64) (int, error) {
	list, err := tx.children(seq)
	return len(list), err
}

// Dependents returns the tasks that belong to a task, in the latest revision of each, the
// oldest first.
func (tx *Tx) Dependents(seq int64) ([]task.Child, error) {
	list, err := tx.children(seq)
	if err != nil {
		return nil, err
	}
	return tx.ledger.dependents(list)
}

func (l *Ledger) dependents(list []*entry) (children []task.Child, err error) {
	for _, e := range list {
		if !e.Latest {
			continue
		}
		c, _, err := l.conversationOf(e)
		if err != nil {
			return nil, err
		}
		children = append(children, task.Child{Task: e.Task.Task, Tie: c.Tie})
	}
	return children, nil
}

// Record writes a message and returns its Seq. Seq and Delivered of m are ignored: one that
// has an Inbox is due from then on.
func (tx *Tx) Record(m task.Message) (seq int64, err error) {
	tx.numbers.message++
	m.Seq, m.Delivered, m.Time = tx.numbers.message, time.Time{}, index.Exact(m.Time)
	if m.Body == nil {
		m.Body = []byte{}
	}
	tx.own.setMessage(&message{index.Message{Message: m}, tx.next})
	row, body := index.MessageRow(&m, index.Place{}), index.NewBody("body", m.Body)
	event := journal.Event{Kind: row.Kind(), Data: row.AppendJSON(nil), Bodies: []journal.Body{body}}
	if about, err := tx.entry(m.Task); about != nil && err == nil {
		event.Task, event.Revision = string(about.ID), uint64(about.Revision)
	}
	tx.write(event, row, func(l *layer, at journal.Place) { l.messages[m.Seq].Place = index.Place{Place: at, Body: body.Name} })
	return m.Seq, nil
}

// MarkDelivered notes that the line of a message is in its inbox.
func (tx *Tx) MarkDelivered(seq int64, at time.Time) error {
	var m message
	for _, l := range [...]*layer{&tx.ledger.base.layer, tx.group, tx.own} {
		if known := l.messages[seq]; known != nil {
			m = *known
		}
	}
	if m.Seq == 0 {
		stored, found, err := tx.ledger.index.Message(background, seq)
		if err != nil || !found {
			return err
		}
		m.Message = stored
	}
	m.Delivered, m.n = index.Exact(at), tx.next
	tx.own.setMessage(&m)
	tx.row(nil, index.MessageRow(&m.Message.Message, index.Place{}))
	return nil
}

// messages returns messages that the index has, and later ones that fit, the oldest first,
// each as it is now. Those of the index have no bodies.
func (tx *Tx) messages(stored []index.Message, fits func(*task.Message) bool) (list []task.Message) {
	now := map[int64]*message{}
	for _, l := range [...]*layer{&tx.ledger.base.layer, tx.group, tx.own} {
		for _, seq := range l.order {
			now[seq] = l.messages[seq]
		}
	}
	for _, m := range stored {
		if now[m.Seq] == nil && fits(&m.Message) {
			list = append(list, m.Message)
		}
	}
	for _, m := range now {
		if fits(&m.Message.Message) {
			list = append(list, m.Message.Message)
		}
	}
	slices.SortFunc(list, func(a, b task.Message) int { return int(a.Seq - b.Seq) })
	return list
}

func firstOf(list []task.Message, err error) (task.Message, bool, error) {
	if err != nil || len(list) == 0 {
		return task.Message{}, false, err
	}
	return list[0], true, nil
}

// MessageWithID returns the oldest message of an id that is not the daemon's, and whether
// there is one (CLOWL-37). It has no body.
func (tx *Tx) MessageWithID(id string) (task.Message, bool, error) {
	stored, err := tx.ledger.index.MessagesWithID(background, id)
	return firstOf(tx.messages(stored, func(m *task.Message) bool { return m.ID == id && id != "" && m.Via != task.ByDaemon }), err)
}

// AnyMessageWithID returns the oldest message of an id, those of the daemon among them, and
// whether there is one. It has no body.
func (tx *Tx) AnyMessageWithID(id string) (task.Message, bool, error) {
	stored, err := tx.ledger.index.MessagesWithID(background, id)
	return firstOf(tx.messages(stored, func(m *task.Message) bool { return m.ID == id && id != "" }), err)
}

// MessageWithHash returns the oldest message of a content, and whether there is one. It has
// no body.
func (tx *Tx) MessageWithHash(hash string) (task.Message, bool, error) {
	stored, err := tx.ledger.index.MessagesWithHash(background, hash)
	return firstOf(tx.messages(stored, func(m *task.Message) bool { return m.Hash == hash }), err)
}

// Replies returns the messages of an act by which a sender replied to the message of an id,
// at or after an instant, the oldest first, without bodies.
func (tx *Tx) Replies(cause string, act envelope.Act, from string, since time.Time) ([]task.Message, error) {
	stored, err := tx.ledger.index.RepliesTo(background, cause)
	return tx.messages(stored, func(m *task.Message) bool {
		return cause != "" && m.Cause == cause && m.Act == act && m.From == from && !m.Time.Before(index.Exact(since))
	}), err
}

// MessagesSince returns the messages to the agent of a task, about it or the tasks that
// belong to it, that others sent after the message with this Seq, the oldest first, without
// bodies. Messages of the daemon are not among them.
func (tx *Tx) MessagesSince(t task.Task, after int64) ([]task.Message, error) {
	stored, err := tx.ledger.index.MessagesAround(background, t.Seq)
	if err != nil {
		return nil, err
	}
	children, err := tx.children(t.Seq)
	around := map[int64]bool{t.Seq: true}
	for _, c := range children {
		around[c.Seq] = true
	}
	return tx.messages(stored, func(m *task.Message) bool {
		return around[m.Task] && m.To == t.Agent && m.From != t.Agent && m.Via != task.ByDaemon && m.Seq > after
	}), err
}

// Announce writes what a requester or agent can do, instead of what it announced before.
func (tx *Tx) Announce(a task.Announcement) error {
	a.Since = index.Exact(a.Since)
	row, err := index.AnnouncementRow(a)
	if err != nil {
		return fmt.Errorf("announce what %s can do: %w", a.Name, err)
	}
	put(&tx.own.news, a.Name, a)
	tx.row(nil, row)
	return nil
}

// Announced reports whether a name has announced something.
func (tx *Tx) Announced(name string) (bool, error) {
	for _, l := range [...]*layer{tx.own, tx.group, &tx.ledger.base.layer} {
		if _, known := l.news[name]; known {
			return true, nil
		}
	}
	return false, nil
}

// Announcements returns all announcements, by name.
func (tx *Tx) Announcements() (list []task.Announcement, err error) {
	all := map[string]task.Announcement{}
	for _, l := range [...]*layer{&tx.ledger.base.layer, tx.group, tx.own} {
		for name, a := range l.news {
			all[name] = a
		}
	}
	for _, a := range all {
		list = append(list, a)
	}
	slices.SortFunc(list, func(a, b task.Announcement) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}
