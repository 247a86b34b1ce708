package ledger

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"mailboxd/internal/index"
	"mailboxd/internal/journal"
	"mailboxd/internal/task"
)

const (
	projectAfter = 50 * time.Millisecond // how long a change stays out of the index
	mostPending  = 100_000               // rows, at which groups wait until the index has them
	retryAfter   = time.Second           // when an index that could not be written is tried again
)

// A projector brings durable changes to the index. What comes together is written once.
// While the index can't be written, a tail in memory answers in its place.
type projector struct {
	ledger *Ledger
	due    chan struct{} // signalled when there is something to write
	ending chan struct{} // closed when nobody is to write any more
	done   sync.WaitGroup

	writing sync.Mutex // held while the index is written

	tailing sync.Mutex  // guards tail; taken before mu
	tail    *index.Tail // nil: none was needed yet

	mu      sync.Mutex // guards what follows
	waiting changes
	taken   changes          // are being written
	mark    journal.Position // up to which all this has everything
	pending bool             // there is something to write
	failed  error            // why the last write failed; nil: it did not
	tailed  bool             // the tail has everything but
	fresh   changes          // these
}

// changes are rows for the index, the last one of each key.
type changes struct {
	tasks map[int64]*entry  // as they are now
	rows  []index.Change    // of other tables
	at    map[index.Key]int // in rows
}

// add adds the rows of a group.
func (c *changes) add(lines []line, tasks map[int64]*entry) {
	if c.tasks == nil {
		c.tasks, c.at = map[int64]*entry{}, map[index.Key]int{}
	}
	for i := range lines {
		if seq := lines[i].task; seq == 0 {
			c.put(lines[i].change)
		} else {
			c.tasks[seq] = tasks[seq]
		}
	}
}

// put adds a row, in the place of an earlier one of its key.
func (c *changes) put(row index.Change) {
	key := row.Key()
	if at, there := c.at[key]; there {
		c.rows[at] = row.Over(c.rows[at])
		return
	}
	c.at[key] = len(c.rows)
	c.rows = append(c.rows, row)
}

// merge adds changes that came later.
func (c *changes) merge(newer changes) {
	maps.Copy(c.tasks, newer.tasks)
	for _, row := range newer.rows {
		c.put(row)
	}
}

func (c *changes) size() int { return len(c.tasks) + len(c.rows) }

// appendTo appends the rows to a list.
func (c *changes) appendTo(list []index.Change) []index.Change {
	list = slices.Grow(append(list, c.rows...), len(c.tasks))
	for _, e := range c.tasks {
		list = append(list, index.TaskRow(&e.Task.Task, e.Request, e.Result))
	}
	return list
}

func (p *projector) start() {
	p.due, p.ending = make(chan struct{}, 1), make(chan struct{})
	if p.failed != nil {
		time.AfterFunc(retryAfter, p.wake)
	}
	p.done.Go(p.serve)
}

// add has the rows of a group written soon.
func (p *projector) add(lines []line, tasks map[int64]*entry, mark journal.Position) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting.add(lines, tasks)
	if p.tailed {
		p.fresh.add(lines, tasks)
	}
	if p.mark = mark; !p.pending {
		p.pending = true
		time.AfterFunc(projectAfter, p.wake)
	}
}

func (p *projector) wake() {
	select {
	case p.due <- struct{}{}:
	default: // it is awake
	}
}

// serve writes what is due, until the ledger is closed. What it can't write, it tries again,
// and Update says why when too much waits.
func (p *projector) serve() {
	for {
		select {
		case <-p.due:
			if p.write() != nil {
				time.AfterFunc(retryAfter, p.wake)
			}
		case <-p.ending:
			return
		}
	}
}

// write brings what is durable to the index.
func (p *projector) write() error {
	p.writing.Lock()
	defer p.writing.Unlock()
	err := p.catchUp()
	if err == nil {
		err = p.apply()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed = err; err == nil {
		p.tailed, p.fresh = false, changes{}
	}
	return err
}

// catchUp has the index at the end that the journal had at the start.
func (p *projector) catchUp() error {
	l := p.ledger
	if l.behind.Load() == nil {
		return nil
	}
	_, err := l.index.CatchUp(l.Journal, nil)
	if err == nil {
		l.behind.Store(nil)
	}
	return err
}

// apply writes the rows.
func (p *projector) apply() error {
	p.mu.Lock()
	rows, mark, pending := p.waiting, p.mark, p.pending
	p.waiting, p.taken, p.pending = changes{}, rows, false
	p.mu.Unlock()
	if !pending {
		return nil
	}
	err := p.ledger.index.Apply(rows.appendTo(nil), mark)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken = changes{}
	if err == nil {
		p.ledger.indexed.Store(mark.N)
		return nil
	}
	rows.merge(p.waiting)
	p.waiting, p.pending = rows, true
	return err
}

// room waits while too much is not in the index.
func (p *projector) room() error {
	p.mu.Lock()
	full, failed := p.waiting.size() > mostPending || p.ledger.behind.Load() != nil, p.failed
	p.mu.Unlock()
	switch {
	case !full:
		return nil
	case failed != nil: // serve tries it again
		return failed
	}
	return p.write()
}

// reader has the index take everything that is durable at the call. It returns who answers
// in its place if the disk does not let it.
func (p *projector) reader() (*index.Reader, error) {
	p.mu.Lock()
	failed := p.failed
	p.mu.Unlock()
	if failed == nil && p.write() == nil {
		return nil, nil
	}
	if r := p.ledger.behind.Load(); r != nil {
		return r, nil
	}
	p.tailing.Lock()
	defer p.tailing.Unlock()
	if p.tail == nil {
		tail, err := p.ledger.index.NewTail()
		if err != nil {
			return nil, err
		}
		p.tail = tail
	}
	p.mu.Lock()
	all, mark := !p.tailed, p.mark
	rows := p.fresh.appendTo(nil)
	if all {
		rows = p.waiting.appendTo(p.taken.appendTo(nil))
	}
	p.tailed, p.fresh = true, changes{}
	p.mu.Unlock()
	if len(rows) == 0 && !all {
		return p.tail.Reader, nil
	}
	err := p.tail.Put(rows, mark, all)
	if err != nil {
		p.mu.Lock()
		p.tailed = false
		p.mu.Unlock()
	}
	return p.tail.Reader, err
}

// close writes everything.
func (p *projector) close() error {
	close(p.ending)
	p.done.Wait()
	err := p.write()
	if p.tail != nil {
		err = errors.Join(err, p.tail.Close())
	}
	return err
}

// evict forgets what the index has and memory does not need. Only the leader calls it.
func (l *Ledger) evict() {
	upTo := l.indexed.Load()
	if upTo == l.evicted {
		return
	}
	l.evicted = upTo
	l.mu.Lock()
	defer l.mu.Unlock()
	l.base.evict(upTo)
}

// evict forgets what was changed last by an event up to a number, and returns at how many
// tasks it has looked: at those only that were settled, or whose parent ended, since it
// forgot the others.
func (b *base) evict(upTo uint64) (looked int) {
	for seq := range b.settled {
		looked++
		e := b.tasks[seq]
		if e != nil && e.n > upTo && e.settled() {
			continue
		}
		delete(b.settled, seq)
		if e != nil && e.settled() && !b.needed(e) {
			b.remove(e)
		}
	}
	order := b.order[:0]
	for _, seq := range b.order {
		if b.messages[seq].n <= upTo {
			delete(b.messages, seq)
		} else {
			order = append(order, seq)
		}
	}
	b.order = order
	first := len(b.events)
	for i, e := range b.events {
		if uint64(e.Seq) > upTo {
			first = i
			break
		}
	}
	b.events = append([]task.Event(nil), b.events[first:]...)
	return looked
}

// needed reports whether an open task needs a task that is over.
func (b *base) needed(e *entry) bool {
	parent := b.tasks[e.Parent]
	return parent != nil && parent.State != task.Done
}
