package ledger

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/index"
	"mailboxd/internal/journal"
	"mailboxd/internal/task"
)

// A Tx is the writing side of the ledger, inside one Update. It must not be kept when the
// function that it was handed to returns.
type Tx struct {
	ledger  *Ledger
	own     *layer // what the function has changed
	group   *layer // what the functions before it in the group have
	numbers numbers
	next    uint64 // the number of the next event of the journal
	wrong   error  // what the function has done wrong
}

// background is the context of what a group reads: the context of no caller ends it.
var background = context.Background()

// write adds an event of the journal with the row that it changes.
func (tx *Tx) write(e journal.Event, c index.Change, set func(*layer, journal.Place)) {
	e.N, e.At = tx.next, time.Now()
	tx.next++
	tx.own.lines = append(tx.own.lines, line{event: e, change: c, set: set})
}

// row is write for a row without a body.
func (tx *Tx) row(of *entry, c index.Change) {
	e := journal.Event{Kind: c.Kind(), Data: c.AppendJSON(nil)}
	if of != nil {
		e.Task, e.Revision = string(of.ID), uint64(of.Revision)
		of.n = tx.next
	}
	tx.write(e, c, nil)
}

// entry returns a revision as it is now; nil when there is none. It must not be changed.
func (tx *Tx) entry(seq int64) (*entry, error) {
	for _, l := range [...]*layer{tx.own, tx.group, &tx.ledger.base.layer} {
		if e := l.tasks[seq]; e != nil {
			return e, nil
		}
	}
	stored, found, err := tx.ledger.index.Stored(background, seq)
	if err != nil || !found {
		return nil, err
	}
	return &entry{Task: stored}, nil
}

// edit is entry for a change.
func (tx *Tx) edit(seq int64) (*entry, error) {
	if e := tx.own.tasks[seq]; e != nil {
		return e, nil
	}
	e, err := tx.entry(seq)
	if e == nil || err != nil {
		return nil, err
	}
	e = e.clone()
	tx.own.set(e)
	return e, nil
}

// whole is edit with the parts of the revision.
func (tx *Tx) whole(seq int64) (e *entry, err error) {
	if e, err = tx.edit(seq); e == nil || err != nil || e.parts != nil {
		return e, err
	}
	e.parts, err = tx.ledger.partsOf(seq)
	return e, err
}

// partsOf reads the parts of a revision that nothing has changed since the index has it.
func (l *Ledger) partsOf(seq int64) (*parts, error) {
	p := &parts{}
	var err error
	if p.runs, err = l.index.StoredRuns(background, seq); err != nil {
		return nil, err
	}
	if p.approvals, err = l.index.Approvals(background, seq); err != nil {
		return nil, err
	}
	if p.delivery, err = l.index.Delivery(background, seq); err != nil {
		return nil, err
	}
	c, found, err := l.index.Conversation(background, seq)
	if found {
		p.conversation = &c
	}
	return p, err
}

// put writes the row of a revision that was edited, with its new bodies.
func (tx *Tx) put(e *entry, bodies ...journal.Body) {
	e.n = tx.next
	event := journal.Event{Kind: index.TaskKind, Task: string(e.ID), Revision: uint64(e.Revision), Bodies: bodies}
	event.Data = index.AppendTask(make([]byte, 0, 512), &e.Task.Task)
	var set func(*layer, journal.Place)
	if len(bodies) > 0 {
		seq := e.Seq
		set = func(l *layer, at journal.Place) { l.tasks[seq].locate(at, bodies) }
	}
	tx.write(event, index.Change{}, set)
	tx.own.lines[len(tx.own.lines)-1].task = e.Seq
}

// locate notes where the bodies of a revision are.
func (e *entry) locate(at journal.Place, bodies []journal.Body) {
	for _, b := range bodies {
		p := index.Place{Place: at, Body: b.Name}
		if index.BodyOf(b.Name) == "result" {
			e.Result, e.result = p, nil
		} else {
			e.Request, e.raw = p, nil
		}
	}
}

// Latest returns the highest revision of an id, and whether there is one.
func (tx *Tx) Latest(id envelope.ID) (task.Task, bool, error) {
	e, err := tx.latest(id)
	if e == nil || err != nil {
		return task.Task{}, false, err
	}
	return e.Task.Task, true, nil
}

func (tx *Tx) latest(id envelope.ID) (*entry, error) {
	if e := tx.latestInMemory(id); e != nil {
		return e, nil
	}
	found, err := tx.ledger.index.Latest(background, []envelope.ID{id})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &entry{Task: found[0]}, nil
}

func (tx *Tx) latestInMemory(id envelope.ID) *entry {
	for _, l := range [...]*layer{tx.own, tx.group, &tx.ledger.base.layer} {
		if seq, ok := l.latest[id]; ok {
			e, _ := tx.entry(seq) // it is in memory
			return e
		}
	}
	return nil
}

// Latests is Latest for many ids at once; those that are not known are left out.
func (tx *Tx) Latests(ids []envelope.ID) (map[envelope.ID]task.Task, error) {
	found := map[envelope.ID]task.Task{}
	var asked []envelope.ID
	for _, id := range ids {
		if e := tx.latestInMemory(id); e != nil {
			found[id] = e.Task.Task
		} else {
			asked = append(asked, id)
		}
	}
	stored, err := tx.ledger.index.Latest(background, asked)
	for _, t := range stored {
		found[t.ID] = t.Task
	}
	return found, err
}

// Task returns the revision with this Seq, and whether there is one.
func (tx *Tx) Task(seq int64) (task.Task, bool, error) {
	e, err := tx.entry(seq)
	if e == nil || err != nil {
		return task.Task{}, false, err
	}
	return e.Task.Task, true, nil
}

// Raw returns the line of a revision, as it came; ErrUnknown when there is none.
func (tx *Tx) Raw(seq int64) ([]byte, error) {
	e, err := tx.entry(seq)
	if err != nil {
		return nil, err
	}
	return tx.ledger.requestOf(e, seq)
}

// Result returns the bytes of the result of a revision, which nobody may have been shown
// yet; nil when there is none.
func (tx *Tx) Result(seq int64) ([]byte, error) {
	e, err := tx.entry(seq)
	if err != nil {
		return nil, err
	}
	result, err := tx.ledger.resultOf(e, seq)
	if errors.Is(err, ErrUnknown) {
		err = nil
	}
	return result, err
}

// revisions returns the revisions of an id as they are now, the first one first.
func (tx *Tx) revisions(id envelope.ID) ([]*entry, error) {
	last, err := tx.latest(id)
	if last == nil || err != nil {
		return nil, err
	}
	if last.Revision == 1 {
		return []*entry{last}, nil
	}
	seqs := map[int64]bool{}
	for seq := range tx.ledger.base.revised[id] {
		seqs[seq] = true
	}
	for _, l := range [...]*layer{tx.own, tx.group} {
		for seq, e := range l.tasks {
			if e.ID == id {
				seqs[seq] = true
			}
		}
	}
	stored, err := tx.ledger.index.Revisions(background, id)
	for _, t := range stored {
		seqs[t.Seq] = true
	}
	if err != nil {
		return nil, err
	}
	list, err := tx.entries(seqs)
	slices.SortFunc(list, func(a, b *entry) int { return cmp.Compare(a.Revision, b.Revision) })
	return list, err
}

// entries returns revisions as they are now, in order of Seq.
func (tx *Tx) entries(seqs map[int64]bool) (list []*entry, err error) {
	for seq := range seqs {
		e, err := tx.entry(seq)
		if err != nil {
			return nil, err
		}
		if e != nil {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b *entry) int { return cmp.Compare(a.Seq, b.Seq) })
	return list, nil
}

// OpenRevisions returns the revisions of an id that are not Done, the first one first.
func (tx *Tx) OpenRevisions(id envelope.ID) (open []task.Task, err error) {
	list, err := tx.revisions(id)
	for _, e := range list {
		if e.State != task.Done {
			open = append(open, e.Task.Task)
		}
	}
	return open, err
}

// OpenOf counts the tasks of a requester that are not Done.
func (tx *Tx) OpenOf(requester string) (int, error) {
	n := tx.ledger.base.open[requester]
	for seq, e := range tx.merged() {
		was := tx.ledger.base.tasks[seq]
		if was != nil && was.Requester == requester && was.State != task.Done {
			n--
		}
		if e.Requester == requester && e.State != task.Done {
			n++
		}
	}
	return n, nil
}

// merged returns what the group has changed so far, with the changes of the function.
func (tx *Tx) merged() map[int64]*entry {
	if len(tx.group.tasks) == 0 {
		return tx.own.tasks
	}
	all := make(map[int64]*entry, len(tx.own.tasks)+len(tx.group.tasks))
	for seq, e := range tx.group.tasks {
		all[seq] = e
	}
	for seq, e := range tx.own.tasks {
		all[seq] = e
	}
	return all
}

// Known returns the highest revision of an id that has this content, and whether there is
// one (AINL-55).
func (tx *Tx) Known(id envelope.ID, hash string) (revision int, ok bool, err error) {
	list, err := tx.revisions(id)
	for _, e := range list {
		if e.Hash == hash {
			revision, ok = e.Revision, true
		}
	}
	return revision, ok, err
}

// Executed reports whether an agent may have begun a revision of the id: a run of it has a
// start, a process or an unknown end, or is going on. An intent that came to nothing is no
// execution.
func (tx *Tx) Executed(id envelope.ID) (bool, error) {
	list, err := tx.revisions(id)
	if err != nil {
		return false, err
	}
	for _, e := range list {
		if e.State == task.Running {
			return true, nil
		}
		if e.Attempt == 0 {
			continue
		}
		runs, err := tx.runs(e)
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(runs, func(r index.Run) bool { return !r.Started.IsZero() || r.PID != 0 || r.Cause == task.CauseLost }) {
			return true, nil
		}
	}
	return false, nil
}

// Add adds a new revision with the bytes that it came as, and returns its Seq. Seq, Latest
// and ResultSum of t are ignored. A revision that is not higher than the others of its id is
// an error, of Add or of its Update.
func (tx *Tx) Add(t task.Task, raw []byte) (seq int64, err error) {
	last, err := tx.latest(t.ID)
	if err == nil && last != nil && last.Revision >= t.Revision {
		err = fmt.Errorf("revision %d of it is there", last.Revision)
		tx.wrong = err
	}
	if err != nil {
		return 0, fmt.Errorf("add task %s: %w", t.ID, err)
	}
	if last != nil {
		if last, err = tx.edit(last.Seq); err != nil {
			return 0, fmt.Errorf("add task %s: %w", t.ID, err)
		}
		last.Latest = false
		tx.put(last)
	}
	tx.numbers.task++
	t.Seq, t.Latest, t.ResultSum = tx.numbers.task, true, ""
	t.Until, t.Deadline, t.Received, t.Finished = index.Exact(t.Until), index.Exact(t.Deadline), index.Exact(t.Received), index.Exact(t.Finished)
	if raw == nil {
		raw = []byte{}
	}
	e := &entry{Task: index.Task{Task: t}, raw: raw, parts: &parts{}}
	tx.own.set(e)
	tx.put(e, index.NewBody("request", raw))
	return t.Seq, nil
}

// Move changes a task that is in this state and attempt, and reports whether it was. When
// another change came first nothing changes. A task that is Done is over, and no Move finds
// it. A move to Done sets Finished, and a Result its sum. A Result that takes the place of
// one in Review leaves that with its approval, where Withheld finds it.
func (tx *Tx) Move(seq int64, from task.State, attempt int, c task.Change) (bool, error) {
	moved, err := tx.move(seq, from, attempt, c)
	if err != nil {
		return false, fmt.Errorf("move task %d from %s to %s: %w", seq, from, c.To, err)
	}
	return moved, nil
}

func (tx *Tx) move(seq int64, from task.State, attempt int, c task.Change) (bool, error) {
	was, err := tx.entry(seq)
	if err != nil || was == nil || from == task.Done || was.State != from || was.Attempt != attempt {
		return false, err
	}
	e, err := tx.edit(seq)
	if err != nil {
		return false, err
	}
	if from == task.Review && c.Result != nil {
		if err := tx.keepAnswer(seq); err != nil {
			return false, err
		}
	}
	e.State, e.Reasons, e.Until = c.To, c.Reasons, index.Exact(c.Until)
	e.Attempt = cmp.Or(c.Attempt, e.Attempt)
	e.Agent, e.Status, e.Kind = cmp.Or(c.Agent, e.Agent), cmp.Or(c.Status, e.Status), cmp.Or(c.Kind, e.Kind)
	if c.To == task.Done {
		e.Finished = index.Exact(time.Now())
	}
	if c.Result == nil {
		tx.put(e)
		return true, nil
	}
	digest := sha256.Sum256(c.Result)
	e.ResultSum, e.result = hex.EncodeToString(digest[:]), c.Result
	tx.put(e, index.NewBody("result", c.Result))
	return true, nil
}

// MarkPut notes that the result file of a revision is in place.
func (tx *Tx) MarkPut(seq int64) error {
	return tx.mark("put", seq, func(t *task.Task) { t.Put = true })
}

// MarkSettled notes that a revision has nothing to put or to deliver.
func (tx *Tx) MarkSettled(seq int64) error {
	return tx.mark("settled", seq, func(t *task.Task) { t.Put, t.Delivered = true, true })
}

// MarkDisplaced notes that the result of the revision before this one is in the history.
func (tx *Tx) MarkDisplaced(seq int64) error {
	return tx.mark("displaced", seq, func(t *task.Task) { t.Replaces = false })
}

func (tx *Tx) mark(what string, seq int64, set func(*task.Task)) error {
	e, err := tx.edit(seq)
	if err != nil {
		return fmt.Errorf("mark task %d %s: %w", seq, what, err)
	}
	if e != nil {
		set(&e.Task.Task)
		tx.put(e)
	}
	return nil
}

// Log adds an event. An event of a revision that is not in the ledger is ErrUnknown.
func (tx *Tx) Log(e task.Event) error {
	if e.Data == nil {
		e.Data = []byte("{}")
	}
	e.Time = index.Exact(e.Time)
	var of *entry
	var err error
	switch {
	case e.Of != 0:
		of, err = tx.entry(e.Of)
	case e.Task != "":
		of, err = tx.revision(e.Task, e.Revision)
	}
	if err == nil && of == nil && (e.Of != 0 || e.Task != "") {
		err = ErrUnknown
	}
	if err != nil {
		return fmt.Errorf("log %s of task %q: %w", e.Kind, e.Task, err)
	}
	if of != nil {
		e.Of, e.Task, e.Revision = of.Seq, of.ID, of.Revision
	}
	e.Seq = int64(tx.next)
	tx.own.events = append(tx.own.events, e)
	at := e.Time
	tx.write(journal.Event{Kind: string(e.Kind), Task: string(e.Task), Revision: uint64(e.Revision), Data: e.Data}, index.EventRow(&e), nil)
	if !at.IsZero() {
		tx.own.lines[len(tx.own.lines)-1].event.At = at
	}
	return nil
}

func (tx *Tx) revision(id envelope.ID, n int) (*entry, error) {
	list, err := tx.revisions(id)
	for _, e := range list {
		if e.Revision == n {
			return e, err
		}
	}
	return nil, err
}

// EventsSince returns the events of one revision after a number, oldest first.
func (tx *Tx) EventsSince(seq, after int64) ([]task.Event, error) {
	list, err := tx.ledger.index.EventsSince(background, seq, after)
	if err != nil {
		return nil, err
	}
	last := after
	if len(list) > 0 {
		last = list[len(list)-1].Seq
	}
	for _, l := range [...]*layer{&tx.ledger.base.layer, tx.group, tx.own} {
		for _, e := range l.events {
			if e.Of == seq && e.Seq > last {
				list = append(list, e)
			}
		}
	}
	return list, nil
}
