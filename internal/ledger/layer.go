package ledger

import (
	"mailboxd/envelope"
	"mailboxd/internal/index"
	"mailboxd/internal/journal"
	"mailboxd/internal/task"
)

// An entry is a revision in memory. Entries in the base never change: a change puts another
// one in their place.
type entry struct {
	index.Task
	raw, result []byte // bodies that are not in the journal yet; nil: none
	parts       *parts // nil: as the index has them
	n           uint64 // the last event of the journal that changed it; 0: none did since the start
}

// The parts of a revision are rows that belong to it.
type parts struct {
	runs         []index.Run
	approvals    []task.Consent
	delivery     task.Delivery
	conversation *task.Conversation // nil: there is none
}

// clone returns an entry that may be changed.
func (e *entry) clone() *entry {
	c := *e
	if e.parts != nil {
		p := *e.parts
		p.runs, p.approvals = append([]index.Run(nil), p.runs...), append([]task.Consent(nil), p.approvals...)
		if p.conversation != nil {
			conversation := *p.conversation
			p.conversation = &conversation
		}
		c.parts = &p
	}
	return &c
}

// settled reports whether nothing is left to do for a revision.
func (e *entry) settled() bool {
	return e.State == task.Done && e.Put && e.Delivered && !e.Replaces && (e.parts == nil || e.parts.conversation == nil || !e.parts.conversation.Open)
}

// A message is a message in memory.
type message struct {
	index.Message
	n uint64 // the last event of the journal that changed it
}

// An account names the balance of an owner on a day.
type account struct{ owner, day string }

// A layer has what was changed: by a function, by a group, or since the index has it. In the
// base it has all open tasks as well.
type layer struct {
	tasks    map[int64]*entry
	latest   map[envelope.ID]int64 // the Seq of the latest revision
	messages map[int64]*message
	order    []int64 // of the messages
	accounts map[account]task.Balance
	pauses   map[string]bool // false: it was resumed
	news     map[string]task.Announcement
	events   []task.Event
	lines    []line // for the journal; not in the base
}

// A line is one event of the journal, and the row that it changes.
type line struct {
	event  journal.Event
	change index.Change                // of the index; the row of a task is made of its entry
	task   int64                       // the Seq of the task whose row this is; 0: none
	set    func(*layer, journal.Place) // notes in a layer where its body is; nil: it has none
}

// put sets a key of a map that may not be there yet.
func put[K comparable, V any](m *map[K]V, key K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = v
}

// set puts a revision in the place of the one before.
func (l *layer) set(e *entry) {
	put(&l.tasks, e.Seq, e)
	if e.Latest {
		put(&l.latest, e.ID, e.Seq)
	}
}

// merge adds a layer that came after this one.
func (l *layer) merge(next *layer) {
	for _, e := range next.tasks {
		l.set(e)
	}
	for _, seq := range next.order {
		l.setMessage(next.messages[seq])
	}
	for a, b := range next.accounts {
		put(&l.accounts, a, b)
	}
	for agent, paused := range next.pauses {
		put(&l.pauses, agent, paused)
	}
	for name, a := range next.news {
		put(&l.news, name, a)
	}
	l.events = append(l.events, next.events...)
	l.lines = append(l.lines, next.lines...)
}

func (l *layer) setMessage(m *message) {
	if l.messages[m.Seq] == nil {
		l.order = append(l.order, m.Seq)
	}
	put(&l.messages, m.Seq, m)
}

// A base is the layer of everything that is durable, with ways to find its tasks.
type base struct {
	layer
	children map[int64]map[int64]bool       // by the Seq of their parent
	threads  map[string]map[int64]bool      // tasks whose conversation is in memory
	waiting  map[string]map[int64]bool      // tasks that wait for an agent to fetch them
	revised  map[envelope.ID]map[int64]bool // the revisions of an id that has several
	open     map[string]int                 // how many tasks of a requester are not Done
	settled  map[int64]bool                 // tasks that evict has to look at
}

func newBase() *base {
	return &base{
		children: map[int64]map[int64]bool{}, threads: map[string]map[int64]bool{},
		waiting: map[string]map[int64]bool{}, revised: map[envelope.ID]map[int64]bool{}, open: map[string]int{}, settled: map[int64]bool{},
	}
}

// set puts an entry in the place of the one before.
func (b *base) set(e *entry) {
	if was := b.tasks[e.Seq]; was != nil {
		b.unlist(was)
	}
	b.layer.set(e)
	add(b.children, e.Parent, e.Seq)
	if e.State == task.Waiting {
		add(b.waiting, e.Agent, e.Seq)
	}
	if e.Revision > 1 || !e.Latest {
		add(b.revised, e.ID, e.Seq)
	}
	if e.parts != nil && e.parts.conversation != nil {
		add(b.threads, e.parts.conversation.Thread, e.Seq)
	}
	if e.State != task.Done {
		b.open[e.Requester]++
		return
	}
	if e.settled() {
		b.settled[e.Seq] = true
	}
	for child := range b.children[e.Seq] { // it does not need them any more
		if b.tasks[child].settled() {
			b.settled[child] = true
		}
	}
}

// remove forgets an entry that the index has as it is.
func (b *base) remove(e *entry) {
	b.unlist(e)
	delete(b.tasks, e.Seq)
	if b.latest[e.ID] == e.Seq {
		delete(b.latest, e.ID)
	}
}

func (b *base) unlist(e *entry) {
	drop(b.children, e.Parent, e.Seq)
	drop(b.waiting, e.Agent, e.Seq)
	drop(b.revised, e.ID, e.Seq)
	if e.parts != nil && e.parts.conversation != nil {
		drop(b.threads, e.parts.conversation.Thread, e.Seq)
	}
	if e.State == task.Done {
		return
	}
	if b.open[e.Requester]--; b.open[e.Requester] == 0 {
		delete(b.open, e.Requester)
	}
}

func add[K comparable](lists map[K]map[int64]bool, key K, seq int64) {
	var none K
	if key == none {
		return
	}
	if lists[key] == nil {
		lists[key] = map[int64]bool{}
	}
	lists[key][seq] = true
}

func drop[K comparable](lists map[K]map[int64]bool, key K, seq int64) {
	if delete(lists[key], seq); len(lists[key]) == 0 {
		delete(lists, key)
	}
}
