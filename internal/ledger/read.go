package ledger

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"mailboxd/envelope"
	"mailboxd/internal/index"
	"mailboxd/internal/task"
)

// What the engine reads often comes from memory. Memory is asked first: what it does not have
// any more, the index has.

// inMemory returns a revision of the base; nil when it is not there.
func (l *Ledger) inMemory(seq int64) *entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.base.tasks[seq]
}

// Task returns the revision with this Seq; ErrUnknown when there is none.
func (l *Ledger) Task(ctx context.Context, seq int64) (task.Task, error) {
	if e := l.inMemory(seq); e != nil {
		return e.Task.Task, nil
	}
	return l.index.Task(ctx, seq)
}

// Raw returns the line of the revision with this Seq, as it came; ErrUnknown when there is
// none.
func (l *Ledger) Raw(ctx context.Context, seq int64) ([]byte, error) {
	if e := l.inMemory(seq); e != nil {
		return l.requestOf(e, seq)
	}
	return l.index.Raw(ctx, seq)
}

// Result returns the bytes of the result of the revision with this Seq; ErrUnknown when there
// is none yet.
func (l *Ledger) Result(ctx context.Context, seq int64) ([]byte, error) {
	if e := l.inMemory(seq); e != nil {
		return l.resultOf(e, seq)
	}
	return l.index.Result(ctx, seq)
}

func (l *Ledger) requestOf(e *entry, seq int64) ([]byte, error) {
	if e == nil {
		return nil, fmt.Errorf("read request of task %d: %w", seq, ErrUnknown)
	}
	return l.bodyOf(e.raw, e.Request, "request", seq)
}

func (l *Ledger) resultOf(e *entry, seq int64) ([]byte, error) {
	if e == nil {
		return nil, fmt.Errorf("read result of task %d: %w", seq, ErrUnknown)
	}
	return l.bodyOf(e.result, e.Result, "result", seq)
}

func (l *Ledger) bodyOf(text []byte, at index.Place, what string, seq int64) ([]byte, error) {
	if text != nil {
		return text, nil
	}
	err := ErrUnknown
	if at != (index.Place{}) {
		text, err = l.index.Body(at)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s of task %d: %w", what, seq, err)
	}
	return text, nil
}

// Conversation returns the conversation of a task, and whether there is one.
func (l *Ledger) Conversation(ctx context.Context, seq int64) (task.Conversation, bool, error) {
	if e := l.inMemory(seq); e != nil {
		return l.conversationOf(e)
	}
	return l.index.Conversation(ctx, seq)
}

// Consent returns the latest approval of a revision at a stage, and whether there is one.
func (l *Ledger) Consent(ctx context.Context, seq int64, stage envelope.Approval) (task.Consent, bool, error) {
	if e := l.inMemory(seq); e != nil && e.parts != nil {
		c, found := e.consent(stage)
		return c, found, nil
	}
	return l.index.Consent(ctx, seq, stage)
}

// Delivery returns the delivery of a task to an inbox; zero for a task that was never to be
// delivered.
func (l *Ledger) Delivery(ctx context.Context, seq int64) (task.Delivery, error) {
	if e := l.inMemory(seq); e != nil && e.parts != nil {
		return e.parts.delivery, nil
	}
	return l.index.Delivery(ctx, seq)
}

// Runs returns the runs of the revision with this Seq, in order of attempt.
func (l *Ledger) Runs(ctx context.Context, seq int64) (runs []task.Run, err error) {
	e := l.inMemory(seq)
	if e == nil || e.parts == nil {
		return l.index.Runs(ctx, seq)
	}
	for i := range e.parts.runs {
		r, err := e.parts.runs[i].Decode()
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	return runs, nil
}

// Balance returns an account on a day; an account of which nothing was reserved or spent is
// empty.
func (l *Ledger) Balance(ctx context.Context, owner, day string) (task.Balance, error) {
	l.mu.Lock()
	b, known := l.base.accounts[account{owner, day}]
	l.mu.Unlock()
	if known {
		return b, nil
	}
	return l.index.Balance(ctx, owner, day)
}

// Reserved returns what a run may spend now: less while runs that it requested have some of
// it. A run that is not known has no limit.
func (l *Ledger) Reserved(ctx context.Context, name task.RunName) (envelope.Budget, error) {
	runs, err := l.Runs(ctx, name.Task)
	for _, r := range runs {
		if r.Attempt == name.Attempt {
			return r.Reserved, err
		}
	}
	return envelope.Budget{}, err
}

// Dependents returns the tasks that belong to a task, in the latest revision of each, the
// oldest first.
func (l *Ledger) Dependents(ctx context.Context, seq int64) ([]task.Child, error) {
	now := map[int64]*entry{}
	l.mu.Lock()
	for child := range l.base.children[seq] {
		now[child] = l.base.tasks[child]
	}
	l.mu.Unlock()
	stored, err := l.index.Dependents(ctx, seq)
	if err != nil {
		return nil, err
	}
	for _, c := range stored {
		if now[c.Seq] == nil {
			now[c.Seq] = &entry{Task: c.Task}
		}
	}
	return l.dependents(inOrder(now))
}

func inOrder(entries map[int64]*entry) (list []*entry) {
	for _, e := range entries {
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b *entry) int { return cmp.Compare(a.Seq, b.Seq) })
	return list
}

// Unfinished returns up to limit revisions after afterSeq that are not Done, in order of Seq.
func (l *Ledger) Unfinished(ctx context.Context, afterSeq int64, limit int) ([]task.Task, error) {
	return l.selectTasks(afterSeq, limit, func(e *entry) bool { return e.State != task.Done }), ctx.Err()
}

// Unsettled returns up to limit revisions after afterSeq that are Done and whose result file
// is not in place or whose callbacks are not done, in order of Seq.
func (l *Ledger) Unsettled(ctx context.Context, afterSeq int64, limit int) ([]task.Task, error) {
	return l.selectTasks(afterSeq, limit, func(e *entry) bool { return e.State == task.Done && !(e.Put && e.Delivered) }), ctx.Err()
}

func (l *Ledger) selectTasks(afterSeq int64, limit int, fits func(*entry) bool) (list []task.Task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for seq, e := range l.base.tasks {
		if seq > afterSeq && fits(e) {
			list = append(list, e.Task.Task)
		}
	}
	slices.SortFunc(list, func(a, b task.Task) int { return cmp.Compare(a.Seq, b.Seq) })
	return list[:min(limit, len(list))]
}
