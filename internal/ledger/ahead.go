package ledger

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"mailboxd/internal/task"
)

// A Request is a task with the line that it came as.
type Request struct {
	task.Task
	Raw []byte
}

// A readCache has requests that are the same in the tables.
type readCache struct {
	tasks map[int64]*Request // without a Seq: who has put it there is reading it
	bytes int                // of their lines
}

// mostStill bounds the lines of it, and mostExpected its tasks.
const (
	mostStill    = 4 << 20
	mostExpected = 8192
)

// keep remembers a request, if there is room.
func (s *readCache) keep(r *Request) {
	if !s.hasRoom(len(r.Raw)) {
		return
	}
	s.forget(r.Seq)
	s.tasks[r.Seq] = r
	s.bytes += len(r.Raw)
}

func (s *readCache) hasRoom(line int) bool {
	return s.bytes+line <= mostStill && len(s.tasks) <= mostExpected
}

// forget is for what somebody has changed.
func (s *readCache) forget(seq int64) {
	if r := s.tasks[seq]; r != nil {
		s.bytes -= len(r.Raw)
	}
	delete(s.tasks, seq)
}

func (s *readCache) clear() {
	clear(s.tasks)
	s.bytes = 0
}

// ReadAhead returns the task with this Seq and its line, and reads others with it
// that are about to be moved. They are remembered for as long as nobody changes
// them: looked at and moved one after the other, a task took 90 µs, and together
// they take 12.
func (l *Ledger) ReadAhead(ctx context.Context, seq int64, next []int64) (r Request, err error) {
	reading := &Request{}
	asked := l.expect(reading, append(next, seq))
	var list []Request
	for _, n := range steps {
		for ; len(asked) >= n; asked = asked[n:] {
			some, err := all(ctx, l.idleReader.read, scanRequest, aheadQueries[n], asked[:n]...)
			if err != nil {
				return Request{}, fmt.Errorf("read tasks with %d: %w", seq, err)
			}
			list = append(list, some...)
		}
	}
	l.remember(reading, list)
	if r, ok := l.Remembered(seq); ok {
		return r, nil
	}
	if r.Task, err = l.Task(ctx, seq); err == nil {
		r.Raw, err = l.Raw(ctx, seq)
	}
	return r, err
}

// Remembered returns a request that was read ahead and is as it was then.
func (l *Ledger) Remembered(seq int64) (Request, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.still.tasks[seq]; r != nil && r.Seq != 0 {
		return *r, true
	}
	return Request{}, false
}

// expect returns those tasks of which the tables have everything, and has the ledger
// know if that changes. What they are marked with is nobody else's.
func (l *Ledger) expect(reading *Request, seqs []int64) (asked []any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.still.tasks) > mostExpected || l.still.bytes > mostStill*3/4 {
		l.still.clear() // nobody has moved them after all
	}
	for _, seq := range seqs {
		if l.live.tasks[seq] != nil || l.folding != nil && l.folding.tasks[seq] != nil {
			continue
		}
		l.still.forget(seq)
		l.still.tasks[seq] = reading
		asked = append(asked, seq)
	}
	return asked
}

// remember keeps requests as they were read, unless they were changed meanwhile:
// then their mark is gone, or is somebody else's who reads them now.
func (l *Ledger) remember(reading *Request, list []Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range list {
		if l.still.tasks[list[i].Seq] == reading {
			l.still.keep(&list[i])
		}
	}
}

// rememberFolded keeps what was just brought to the tables and is next. The caller
// holds mu.
func (l *Ledger) rememberFolded(c *memtable) {
	for _, seq := range c.order {
		if t := c.tasks[seq]; t.added && t.State == task.Queued && l.still.hasRoom(len(t.raw)) && l.live.tasks[seq] == nil {
			l.still.keep(&Request{t.Task, bytes.Clone(t.raw)}) // or all that was read with the line stays in memory
		}
	}
}

// aheadQueries read as many tasks as each of steps says.
var aheadQueries = func() map[int]string {
	queries := map[int]string{}
	for _, n := range steps {
		queries[n] = "SELECT r.body, " + qualified(taskColumns, "t") + " FROM tasks t JOIN requests r ON r.task = t.seq WHERE t.seq IN (" +
			strings.Repeat("?, ", n-1) + "?) ORDER BY t.seq"
	}
	return queries
}()

// qualified is a list of columns with the name of their table before each.
func qualified(columns, of string) string {
	return of + "." + strings.ReplaceAll(columns, ", ", ", "+of+".")
}

func scanRequest(r row) (q Request, err error) {
	q.Task, err = scanTask(prefixed{r, &q.Raw})
	return q, err
}
