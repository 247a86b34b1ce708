package ledger

import (
	"fmt"
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
)

// A projector brings durable changes to the index. What comes together is written once.
type projector struct {
	ledger *Ledger
	due    chan struct{} // signalled when there is something to write
	ending chan struct{} // closed when nobody is to write any more
	done   sync.WaitGroup

	writing sync.Mutex // held while the index is written

	mu      sync.Mutex        // guards what follows
	tasks   map[int64]*entry  // as they are now
	rows    []index.Change    // of other tables
	at      map[index.Key]int // in rows
	mark    journal.Position  // up to which rows have everything
	pending bool              // there is something to write
}

func (p *projector) start(l *Ledger) {
	p.ledger, p.due, p.ending, p.at, p.tasks = l, make(chan struct{}, 1), make(chan struct{}), map[index.Key]int{}, map[int64]*entry{}
	p.done.Go(p.serve)
}

// add has the rows of a group written soon.
func (p *projector) add(lines []line, tasks map[int64]*entry, mark journal.Position) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range lines {
		if seq := lines[i].task; seq == 0 {
			p.put(lines[i].change)
		} else {
			p.tasks[seq] = tasks[seq]
		}
	}
	if p.mark = mark; !p.pending {
		p.pending = true
		time.AfterFunc(projectAfter, p.wake)
	}
}

// put adds a row, in the place of an earlier one of its key. The caller holds mu.
func (p *projector) put(c index.Change) {
	key := c.Key()
	if at, there := p.at[key]; there {
		p.rows[at] = c.Over(p.rows[at])
		return
	}
	p.at[key] = len(p.rows)
	p.rows = append(p.rows, c)
}

func (p *projector) wake() {
	select {
	case p.due <- struct{}{}:
	default: // it is awake
	}
}

// serve writes what is due, until the ledger is closed. What it can't write, a later call
// writes, or says why.
func (p *projector) serve() {
	for {
		select {
		case <-p.due:
			if p.write() != nil {
				time.AfterFunc(time.Second, p.wake)
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
	p.mu.Lock()
	tasks, rows, at, mark, pending := p.tasks, p.rows, p.at, p.mark, p.pending
	p.tasks, p.rows, p.at, p.pending = map[int64]*entry{}, nil, map[index.Key]int{}, false
	p.mu.Unlock()
	if !pending {
		return nil
	}
	all := slices.Grow(rows, len(tasks))
	for _, e := range tasks {
		all = append(all, index.TaskRow(&e.Task.Task, e.Request, e.Result))
	}
	if err := p.ledger.index.Apply(all, mark); err != nil {
		p.restore(tasks, rows, at)
		return err
	}
	p.ledger.indexed.Store(mark.N)
	return nil
}

// restore has rows written later that can't be written now. Newer ones of the same key stay.
func (p *projector) restore(tasks map[int64]*entry, rows []index.Change, at map[index.Key]int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	newerTasks, newer := p.tasks, p.rows
	p.tasks, p.rows, p.at, p.pending = tasks, rows, at, true
	maps.Copy(p.tasks, newerTasks)
	for _, c := range newer {
		p.put(c)
	}
}

// room waits while too much is not in the index.
func (p *projector) room() error {
	p.mu.Lock()
	full := len(p.rows)+len(p.tasks) > mostPending
	p.mu.Unlock()
	if !full {
		return nil
	}
	return p.write()
}

// close writes everything.
func (p *projector) close() error {
	close(p.ending)
	p.done.Wait()
	return p.write()
}

// drain waits until the index has everything that was durable at the call.
func (l *Ledger) drain() error {
	if err := l.project.write(); err != nil {
		return fmt.Errorf("bring changes to the index: %w", err)
	}
	return nil
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
	b := l.base
	for seq, e := range b.tasks {
		if e.n <= upTo && e.settled() && !b.needed(e) {
			b.remove(b.tasks[seq])
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
}

// needed reports whether an open task needs a task that is over.
func (b *base) needed(e *entry) bool {
	parent := b.tasks[e.Parent]
	return parent != nil && parent.State != task.Done
}
